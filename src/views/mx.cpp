#include "views/mx.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/kept.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/integers.hpp"
#include "views/cast.hpp"
#include "views/loaded_blob.hpp"

namespace poise {
namespace {

constexpr std::size_t kBlock = 4096;  // elements at a time; an even number, so that pieces begin with whole bytes
constexpr float kIntegerUnit = 0x1p-6F;

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}: {}", tensor.name, tensor.layout_name, problem));
}

const Part& require(const Tensor& tensor, std::string_view role) {
  const Part* part = tensor.part(role);
  if (part == nullptr) fail(tensor, fmt::format("the part {} is missing", role));
  return *part;
}

std::uint64_t number(const Tensor& tensor, std::string_view key) {
  const Value* value = tensor.attributes.find(key);
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  if (number == nullptr) fail(tensor, fmt::format("attribute {}: expected an unsigned integer", key));
  return *number;
}

void require_size(const Tensor& tensor, const Part& part, std::optional<std::uint64_t> bytes) {
  if (bytes == part.blob->size()) return;
  fail(tensor, fmt::format("{}: expected {} bytes, found {}", part.role, bytes ? fmt::format("{}", *bytes) : "too many", part.blob->size()));
}

class MxBlob final : public Blob {
 public:
  explicit MxBlob(const Tensor& tensor) : name_(tensor.name), data_(tensor.require("data")), scales_(tensor.require("scales").blob), size_(tensor.elements()) {
    const MxScheme scheme = mx_scheme(tensor);
    block_size_ = scheme.block_size;
    along_ = tensor.shape[scheme.axis];
    for (std::size_t d = scheme.axis + 1; d < tensor.shape.size(); ++d) stride_ *= tensor.shape[d];
    for (std::uint32_t code = 0; code < factors_.size(); ++code) factors_[code] = decode_float(DType::f8_e8m0, code);
  }

  std::uint64_t size() const override { return size_ * sizeof(float); }
  bool seekable() const override { return data_.blob->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const auto scales = kept_.get([this] { return std::make_shared<const LoadedBlob>(scales_); });
    const bool is_last = offset + out.size() == size();
    std::vector<std::byte> codes(kBlock + 1);
    std::vector<float> numbers(kBlock + 1);
    while (!out.empty()) {
      const std::uint64_t element = offset / sizeof(float);
      const auto skipped = static_cast<std::size_t>(offset % sizeof(float));
      const std::size_t count = std::min((skipped + out.size() + sizeof(float) - 1) / sizeof(float), kBlock);
      decode(element, std::span(numbers).first(count), codes, *scales);
      const auto made = std::as_bytes(std::span<const float>(numbers).first(count)).subspan(skipped);
      const std::size_t copied = std::min(made.size(), out.size());
      std::copy_n(made.begin(), copied, out.begin());
      offset += copied;
      out = out.subspan(copied);
    }
    if (is_last) kept_.let_go();
  }

 private:
  void decode(std::uint64_t first, std::span<float> numbers, std::vector<std::byte>& codes, const LoadedBlob& scales) const {
    read_elements(first, numbers, codes);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float element = numbers[i];
      numbers[i] = element * factors_[std::to_integer<std::size_t>(scales.bytes()[static_cast<std::size_t>(scale_of(first + i))])];
      if (std::isinf(numbers[i]) && std::isfinite(element))
        throw Error(ErrorKind::unsupported, fmt::format("tensor {}: element {} is too large for f32", name_, first + i));
    }
  }

  void read_elements(std::uint64_t first, std::span<float> numbers, std::vector<std::byte>& codes) const {
    const bool halves = info(data_.dtype).bits == 4;
    const std::uint64_t begin = halves ? first / 2 : first;
    const std::uint64_t end = halves ? (first + numbers.size() + 1) / 2 : first + numbers.size();
    const auto bytes = std::span(codes).first(static_cast<std::size_t>(end - begin));
    data_.blob->read(begin, bytes);
    if (data_.dtype != DType::i8) return widen(data_.dtype, bytes.data(), numbers, halves ? first % 2 : 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(std::to_integer<std::int8_t>(bytes[i])) * kIntegerUnit;
  }

  std::uint64_t scale_of(std::uint64_t element) const {
    const std::uint64_t inner = element % stride_;
    const std::uint64_t middle = element / stride_ % along_;
    const std::uint64_t outer = element / stride_ / along_;
    return (outer * (along_ / block_size_) + middle / block_size_) * stride_ + inner;
  }

  std::string name_;
  Part data_;
  BlobPtr scales_;
  std::uint64_t size_;  // elements
  std::uint64_t block_size_ = 0;
  std::uint64_t along_ = 0;
  std::uint64_t stride_ = 1;
  std::array<float, 256> factors_{};
  Kept<const LoadedBlob> kept_;
};

}  // namespace

bool is_mx(const Tensor& tensor) {
  if (tensor.layout != Layout::other || tensor.layout_name != kMxLayout) return false;
  return std::ranges::none_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
}

MxScheme mx_scheme(const Tensor& tensor) {
  constexpr std::array kElements = {DType::f4_e2m1, DType::f8_e4m3, DType::f8_e5m2, DType::i8, DType::unknown};
  const Part& data = require(tensor, "data");
  const Part& scales = require(tensor, "scales");
  if (tensor.parts.size() != 2) fail(tensor, fmt::format("{} parts, expected 2", tensor.parts.size()));
  const Value* form = tensor.attributes.find("scale_form");
  if (form != nullptr && *form != Value("e8m0_exponent")) fail(tensor, "attribute scale_form: expected e8m0_exponent");
  if (scales.dtype != DType::f8_e8m0) fail(tensor, fmt::format("scales: expected u8 of type f8_e8m0, found {}", scales.dtype_name));
  if (std::ranges::find(kElements, data.dtype) == kElements.end()) fail(tensor, fmt::format("data: {} is no MX element", data.dtype_name));
  if (tensor.shape.empty()) fail(tensor, "a scalar has no blocks");
  const std::uint64_t axis = tensor.attributes.find("axis") == nullptr ? tensor.shape.size() - 1 : number(tensor, "axis");
  if (axis >= tensor.shape.size()) fail(tensor, fmt::format("attribute axis: {} for rank {}", axis, tensor.shape.size()));
  const std::uint64_t block = number(tensor, "block_size");
  if (block < 2 || tensor.shape[axis] % block != 0)
    fail(tensor, fmt::format("attribute block_size: {} does not divide the {} elements along axis {}", block, tensor.shape[axis], axis));
  if (data.dtype != DType::unknown) require_size(tensor, data, packed_bytes(data.dtype, tensor.elements()));
  require_size(tensor, scales, tensor.elements() / block);
  return {static_cast<std::size_t>(axis), block};
}

bool spells_mx_scheme(std::string_view attribute) { return attribute == "axis" || attribute == "block_size" || attribute == "scale_form"; }

BlobPtr make_mx_decoded_blob(const Tensor& tensor) { return std::make_shared<MxBlob>(tensor); }

}  // namespace poise
