#include "tensor/quantize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "tensor/affine.hpp"
#include "tensor/dense.hpp"
#include "tensor/scale_search.hpp"

namespace poise {
namespace {

constexpr std::size_t kBlock = 4096;  // elements at a time: numbers and codes stay in the first cache; even, for packing

// Adding and subtracting these rounds to the nearest integer, ties to even, in code that compilers make vectors of.
constexpr float kRoundFloat = 0x1.8p23F;
constexpr double kRoundDouble = 0x1.8p52;

class ScaleOfElements final : public AffineSource {
 public:
  ScaleOfElements(std::string name, BlobPtr elements, const StoredType& type) : name_(std::move(name)), elements_(std::move(elements)), type_(type) {}

  Affine get() const override {
    std::call_once(once_, [&] { affine_ = find_scale(name_, *elements_, type_); });
    return affine_;
  }
  bool packed() const override { return type_.dtype == DType::qint4; }

 private:
  std::string name_;
  BlobPtr elements_;
  StoredType type_;
  mutable std::once_flag once_;
  mutable Affine affine_;
};

// Numbers to codes. Requires: they are finite.
class Encoder {
 public:
  Encoder(DType dtype, const Affine& affine) : affine_(affine), format_(code_format(dtype, affine)) {}

  void encode(std::span<const float> numbers, std::span<std::int16_t> codes) const {
    if (affine_.delta == 0) {
      std::ranges::fill(codes, std::int16_t{0});
    } else if (format_.is_unsigned) {
      encode_range(numbers, codes);
    } else {
      encode_symmetric(numbers, codes);
    }
  }

 private:
  void encode_symmetric(std::span<const float> numbers, std::span<std::int16_t> codes) const {
    const auto limit = static_cast<float>(format_.largest());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float code = std::clamp(numbers[i] / affine_.delta, -limit, limit);
      codes[i] = static_cast<std::int16_t>((code + kRoundFloat) - kRoundFloat);
    }
  }

  // In double: the difference of two float32 numbers may be larger than any of them.
  void encode_range(std::span<const float> numbers, std::span<std::int16_t> codes) const {
    const auto min = static_cast<double>(affine_.min);
    const auto delta = static_cast<double>(affine_.delta);
    const double limit = format_.span();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double code = std::clamp((static_cast<double>(numbers[i]) - min) / delta, 0.0, limit);
      codes[i] = static_cast<std::int16_t>((code + kRoundDouble) - kRoundDouble);
    }
  }

  Affine affine_;
  CodeFormat format_;
};

QuantizationError error_of(std::span<const float> numbers, std::span<const float> decoded) {
  constexpr std::size_t kLanes = 4;  // sums side by side, so that the compiler makes vectors of them
  std::array<double, kLanes> worst{};
  std::array<double, kLanes> squared_error{};
  std::array<double, kLanes> squared_values{};
  const auto add = [&](std::size_t lane, std::size_t i) {
    const auto value = static_cast<double>(numbers[i]);
    const double error = value - static_cast<double>(decoded[i]);
    worst[lane] = std::max(worst[lane], std::abs(error));
    squared_error[lane] += error * error;
    squared_values[lane] += value * value;
  };
  std::size_t i = 0;
  for (; i + kLanes <= numbers.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(lane, i + lane);
  }
  for (; i < numbers.size(); ++i) add(0, i);
  QuantizationError sum;
  sum.values = numbers.size();
  for (std::size_t lane = 0; lane < kLanes; ++lane) sum.merge({0, worst[lane], squared_error[lane], squared_values[lane]});
  return sum;
}

class QuantizedBlob final : public Blob {
 public:
  QuantizedBlob(BlobPtr elements, DType dtype, std::shared_ptr<const AffineSource> affine, std::shared_ptr<QuantizationReport> report)
      : elements_(std::move(elements)),
        count_(elements_->size() / sizeof(float)),
        dtype_(dtype),
        codes_a_byte_(8 / info(dtype).bits),
        affine_(std::move(affine)),
        report_(std::move(report)) {}

  std::uint64_t size() const override { return (count_ + codes_a_byte_ - 1) / codes_a_byte_; }
  bool seekable() const override { return elements_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const Affine affine = affine_->get();
    const Encoder encoder(dtype_, affine);
    std::vector<float> numbers(kBlock);
    std::vector<float> decoded(kBlock);
    std::vector<std::int16_t> codes(kBlock);
    QuantizationError error;
    while (!out.empty()) {
      const std::uint64_t first = offset * codes_a_byte_;
      const auto count = static_cast<std::size_t>(std::min({out.size() * codes_a_byte_, kBlock, static_cast<std::size_t>(count_ - first)}));
      const auto block = std::span(numbers).first(count);
      const auto block_codes = std::span(codes).first(count);
      const auto block_decoded = std::span(decoded).first(count);
      elements_->read(first * sizeof(float), std::as_writable_bytes(block));
      encoder.encode(block, block_codes);
      decode_codes(affine, block_codes, block_decoded);
      if (report_) error.merge(error_of(block, block_decoded));
      const std::size_t bytes = (count + codes_a_byte_ - 1) / codes_a_byte_;
      pack(block_codes, out.first(bytes));
      offset += bytes;
      out = out.subspan(bytes);
    }
    if (report_) report_->add(error);
  }

 private:
  void pack(std::span<const std::int16_t> codes, std::span<std::byte> out) const {
    if (codes_a_byte_ == 1) {
      std::ranges::transform(codes, out.begin(), [](std::int16_t code) { return static_cast<std::byte>(code); });
      return;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::byte low = static_cast<std::byte>(codes[2 * i]) & std::byte{0x0f};
      const std::byte high = 2 * i + 1 < codes.size() ? static_cast<std::byte>(codes[2 * i + 1]) << 4 : std::byte{0};
      out[i] = low | high;
    }
  }

  BlobPtr elements_;
  std::uint64_t count_;
  DType dtype_;
  std::size_t codes_a_byte_;
  std::shared_ptr<const AffineSource> affine_;
  std::shared_ptr<QuantizationReport> report_;
};

}  // namespace

void QuantizationReport::add(const QuantizationError& error) {
  const std::lock_guard lock(mutex_);
  error_.merge(error);
}

QuantizationError QuantizationReport::total() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

Tensor quantize(const Tensor& tensor, const StoredType& type, std::shared_ptr<QuantizationReport> report) {
  const BlobPtr elements = dense_blob(tensor, DType::f32);
  const auto affine = std::make_shared<ScaleOfElements>(tensor.name, elements, type);
  Tensor quantized = make_dense(tensor.name, tensor.shape, type.dtype, std::make_shared<QuantizedBlob>(elements, type.dtype, affine, std::move(report)));
  quantized.layout = Layout::affine;
  quantized.affine = affine;
  if (tensor.layout == Layout::dense) quantized.attributes = tensor.attributes;  // other layouts' describe their codes
  return quantized;
}

}  // namespace poise
