#include "views/quantize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "codec/affine.hpp"
#include "codec/quantize_kernels.hpp"
#include "views/block_quantize.hpp"
#include "views/block_size.hpp"
#include "views/dense.hpp"
#include "views/group_quantize.hpp"
#include "views/lossy_blob.hpp"
#include "views/scale_search.hpp"

namespace poise {
namespace {

class ScaleOfElements final : public AffineSource {
 public:
  ScaleOfElements(std::string name, BlobPtr elements, const StoredType& type)
      : name_(std::move(name)), elements_(std::move(elements)), type_(type) {}

  Affine get() const override {
    std::call_once(once_, [&] { affine_ = find_scale(name_, *elements_, type_); });
    return affine_;
  }
  bool packed() const override { return type_.dtype == DType::qint4; }
  bool ranged() const override { return type_.scale == ScaleRule::range; }

 private:
  std::string name_;
  BlobPtr elements_;
  StoredType type_;
  mutable std::once_flag once_;
  mutable Affine affine_;
};

// Numbers to codes, one to a byte. Requires: they are finite.
class Encoder {
 public:
  Encoder(DType dtype, const Affine& affine) : affine_(affine), format_(code_format(dtype, affine)) {}

  QuantizationError encode(std::span<const float> numbers, std::span<std::byte> codes) const {
    if (affine_.delta == 0) return encode_nothing(numbers, codes);
    if (format_.is_unsigned) return encode_range(numbers, codes);
    return quantize_linear(numbers.data(), numbers.size(), affine_.delta, {-format_.largest(), format_.largest(), 0},
                           codes.data());
  }

 private:
  static void add(QuantizationError& error, double value, double decoded) {
    const double lost = value - decoded;
    ++error.values;
    error.worst = std::max(error.worst, std::abs(lost));
    error.squared_error += lost * lost;
    error.squared_values += value * value;
  }

  static QuantizationError encode_nothing(std::span<const float> numbers, std::span<std::byte> codes) {
    QuantizationError error;
    std::ranges::fill(codes, std::byte{0});
    for (const float number : numbers) add(error, static_cast<double>(number), 0);
    return error;
  }

  // In double: the difference of two float32 numbers may overflow float32.
  QuantizationError encode_range(std::span<const float> numbers, std::span<std::byte> codes) const {
    QuantizationError error;
    const auto min = static_cast<double>(affine_.min);
    const auto delta = static_cast<double>(affine_.delta);
    const double limit = format_.span();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = static_cast<double>(numbers[i]);
      const double code = std::nearbyint(std::clamp((number - min) / delta, 0.0, limit));
      codes[i] = static_cast<std::byte>(static_cast<unsigned>(code));
      add(error, number, static_cast<double>(static_cast<float>(min + code * delta)));
    }
    return error;
  }

  Affine affine_;
  CodeFormat format_;
};

class QuantizedBlob final : public LossyBlob<QuantizationError> {
 public:
  QuantizedBlob(std::string name, BlobPtr elements, DType dtype, std::shared_ptr<const AffineSource> affine)
      : name_(std::move(name)),
        elements_(std::move(elements)),
        count_(elements_->size() / sizeof(float)),
        dtype_(dtype),
        codes_a_byte_(8 / info(dtype).bits),
        affine_(std::move(affine)) {}

  std::uint64_t size() const override { return (count_ + codes_a_byte_ - 1) / codes_a_byte_; }
  bool seekable() const override { return elements_->seekable(); }

  void read_measured(std::uint64_t offset, std::span<std::byte> out, QuantizationError* loss) const override {
    const Encoder encoder(dtype_, affine_->get());
    std::array<float, kBlockSize> numbers;
    std::array<std::byte, kBlockSize> codes;
    while (!out.empty()) {
      const std::uint64_t first = offset * codes_a_byte_;
      const auto count = static_cast<std::size_t>(
          std::min({out.size() * codes_a_byte_, kBlockSize, static_cast<std::size_t>(count_ - first)}));
      const auto block = std::span(numbers).first(count);
      const std::size_t bytes = (count + codes_a_byte_ - 1) / codes_a_byte_;
      elements_->read(first * sizeof(float), std::as_writable_bytes(block));
      const QuantizationError error =
          encoder.encode(block, codes_a_byte_ == 1 ? out.first(count) : std::span(codes).first(count));
      if (!std::isfinite(error.squared_error)) refuse(first);
      if (loss != nullptr) loss->merge(error);
      if (codes_a_byte_ == 2) pack_nibbles(codes.data(), count, out.data());
      offset += bytes;
      out = out.subspan(bytes);
    }
  }

 private:
  // The largest code times the scale overflows float32, although the number itself does not.
  [[noreturn]] void refuse(std::uint64_t element) const {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("tensor {}: elements from {} on become codes of numbers that are not finite, for they are as "
                    "large as float32 numbers can be",
                    name_, element))
        .with({.kind = Remedy::Kind::keep, .value = "f32", .tensor = name_});
  }

  std::string name_;
  BlobPtr elements_;
  std::uint64_t count_;
  DType dtype_;
  std::size_t codes_a_byte_;
  std::shared_ptr<const AffineSource> affine_;
};

}  // namespace

Tensor quantize(const Tensor& tensor, const StoredType& type) {
  if (const BlockType* blocks = block_type(type)) return quantize_to_blocks(tensor, *blocks, nullptr);
  if (type.grouped()) return quantize_groups(tensor, type.groups);
  const BlobPtr elements = dense_blob(tensor, DType::f32);
  const auto affine = std::make_shared<ScaleOfElements>(tensor.name, elements, type);
  Tensor quantized = make_dense(tensor.name, tensor.shape, type.dtype,
                                std::make_shared<QuantizedBlob>(tensor.name, elements, type.dtype, affine));
  quantized.layout = std::shared_ptr<const AffineSource>(affine);
  if (tensor.layout == Layout::dense) quantized.attributes = tensor.attributes;  // others describe codes
  return quantized;
}

}  // namespace poise
