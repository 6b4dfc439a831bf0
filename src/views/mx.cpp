// Decodes MX tensors (see tensor/mx_scheme.hpp) when they are read.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "io/lazy_value.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/integers.hpp"
#include "tensor/mx_scheme.hpp"
#include "tensor/part_types.hpp"
#include "views/block_size.hpp"
#include "views/cast.hpp"
#include "views/layout_type.hpp"
#include "views/loaded_blob.hpp"

namespace poise {
namespace {

constexpr float kIntegerUnit = 0x1p-6F;

class MxBlob final : public Blob {
 public:
  explicit MxBlob(const Tensor& tensor)
      : data_(tensor.require("data")), scales_(tensor.require("scales").blob), size_(tensor.elements()) {
    check_mx_parts(tensor);
    const MxScheme scheme = *mx_scheme(tensor.layout);
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
    std::vector<std::byte> codes(kBlockSize + 1);
    std::vector<float> numbers(kBlockSize + 1);
    while (!out.empty()) {
      const std::uint64_t element = offset / sizeof(float);
      const auto skipped = static_cast<std::size_t>(offset % sizeof(float));
      const std::size_t count = std::min((skipped + out.size() + sizeof(float) - 1) / sizeof(float), kBlockSize);
      decode(element, std::span(numbers).first(count), codes, *scales);
      const auto made = std::as_bytes(std::span<const float>(numbers).first(count)).subspan(skipped);
      const std::size_t copied = std::min(made.size(), out.size());
      std::copy_n(made.begin(), copied, out.begin());
      offset += copied;
      out = out.subspan(copied);
    }
    if (is_last) kept_.release();
  }

 private:
  void decode(std::uint64_t first, std::span<float> numbers, std::vector<std::byte>& codes,
              const LoadedBlob& scales) const {
    read_elements(first, numbers, codes);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] *=
          factors_[std::to_integer<std::size_t>(scales.bytes()[static_cast<std::size_t>(scale_of(first + i))])];
  }

  void read_elements(std::uint64_t first, std::span<float> numbers, std::vector<std::byte>& codes) const {
    const bool halves = info(data_.dtype).bits == 4;
    const std::uint64_t begin = halves ? first / 2 : first;
    const std::uint64_t end = halves ? (first + numbers.size() + 1) / 2 : first + numbers.size();
    const auto bytes = std::span(codes).first(static_cast<std::size_t>(end - begin));
    data_.blob->read(begin, bytes);
    if (data_.dtype != DType::i8) return widen(data_.dtype, bytes.data(), numbers, halves ? first % 2 : 0);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(std::to_integer<std::int8_t>(bytes[i])) * kIntegerUnit;
  }

  std::uint64_t scale_of(std::uint64_t element) const {
    const std::uint64_t inner = element % stride_;
    const std::uint64_t middle = element / stride_ % along_;
    const std::uint64_t outer = element / stride_ / along_;
    return (outer * (along_ / block_size_) + middle / block_size_) * stride_ + inner;
  }

  Part data_;
  BlobPtr scales_;
  std::uint64_t size_;  // elements
  std::uint64_t block_size_ = 0;
  std::uint64_t along_ = 0;
  std::uint64_t stride_ = 1;
  std::array<float, 256> factors_{};
  LazyValue<const LoadedBlob> kept_;
};

std::optional<TensorLayout> read_mx(const Tensor& tensor, std::string_view name) {
  if (name != kMxLayout) return std::nullopt;
  return read_mx_scheme(tensor);
}

BlobPtr mx_elements(const Tensor& tensor) { return std::make_shared<MxBlob>(tensor); }

bool is_same_scheme(const Tensor& a, const Tensor& b) { return *mx_scheme(a.layout) == *mx_scheme(b.layout); }

}  // namespace

const LayoutType layouts::mx = {
    .name = kMxLayout,
    .quantized = true,
    .read = read_mx,
    .check = check_mx_parts,
    .needs_known_parts = true,
    .has_float_elements = has_known_types,
    .elements = mx_elements,
    .same_scheme = is_same_scheme,
    .spells_scheme = spells_mx_scheme,
};

}  // namespace poise
