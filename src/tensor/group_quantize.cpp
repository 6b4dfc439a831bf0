#include "tensor/group_quantize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "tensor/counted_blocks.hpp"
#include "tensor/dense.hpp"
#include "tensor/float_formats.hpp"
#include "tensor/quantize_kernels.hpp"

namespace poise {
namespace {

namespace tbb = oneapi::tbb;

constexpr std::size_t kBlock = CountedBlocks::kElements;  // elements at a time: numbers and codes stay in the first cache
constexpr std::size_t kGroupsPerTask = 512;               // groups a thread looks at before it takes more
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr double kLargestHalf = 65504;

// Scales and zero points of all groups.
class GroupScales {
 public:
  GroupScales(std::string name, BlobPtr elements, const Groups& groups)
      : name_(std::move(name)), elements_(std::move(elements)), groups_(groups), count_(elements_->size() / sizeof(float) / groups.size) {}

  std::uint64_t count() const { return count_; }
  int largest_code() const { return (1 << groups_.bits) - 1; }

  // As they are stored: float16.
  const std::vector<std::uint16_t>& scales() const { return find().scales_; }
  const std::vector<std::uint16_t>& zeros() const { return find().zeros_; }

  // The numbers that these stand for.
  float factor(std::size_t group) const { return find().factors_[group]; }
  int zero_point(std::size_t group) const { return find().zero_points_[group]; }

 private:
  const GroupScales& find() const {
    std::call_once(once_, [this] {
      scales_.resize(static_cast<std::size_t>(count_));
      zeros_.resize(static_cast<std::size_t>(count_));
      factors_.resize(static_cast<std::size_t>(count_));
      zero_points_.resize(static_cast<std::size_t>(count_));
      const auto look_at = [this](const tbb::blocked_range<std::uint64_t>& range) {
        const auto size = static_cast<std::size_t>(groups_.size);
        const std::size_t at_once = std::max<std::size_t>(1, kBlock / size);
        std::vector<float> numbers(at_once * size);
        for (std::uint64_t g = range.begin(); g < range.end();) {
          const auto block = std::span(numbers).first(static_cast<std::size_t>(std::min<std::uint64_t>(at_once, range.end() - g)) * size);
          elements_->read(g * size * sizeof(float), std::as_writable_bytes(block));
          for (std::size_t begin = 0; begin < block.size(); begin += size, ++g) find_one(g, block.subspan(begin, size));
        }
      };
      // Isolated: a thread that waits here must not take up other work that may ask for these very scales.
      tbb::this_task_arena::isolate([&] { tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, count_, kGroupsPerTask), look_at); });
    });
    return *this;
  }

  void find_one(std::uint64_t g, std::span<const float> group) const {
    const Extremes extremes = find_extremes(group.data(), group.size());
    if (extremes.largest >= kInfinity) {
      const auto bad = std::ranges::find_if(group, [](float value) { return !std::isfinite(value); });
      refuse(g * groups_.size + static_cast<std::uint64_t>(bad - group.begin()), "is not finite");
    }
    const double min = std::min(0.0, static_cast<double>(extremes.min));
    const double max = std::max(0.0, static_cast<double>(extremes.max));
    const double scale = (max - min) / largest_code();
    if (scale > kLargestHalf) refuse(g * groups_.size, "begins a group too large for a float16 scale");
    const std::uint16_t half = encode_f16(scale);
    const float stored = decode_float(DType::f16, half);
    const double zero = stored == 0 ? 0 : std::clamp(std::nearbyint((0.0 - min) / static_cast<double>(stored)), 0.0, static_cast<double>(largest_code()));
    const auto at = static_cast<std::size_t>(g);
    scales_[at] = half;
    factors_[at] = stored;
    zeros_[at] = encode_f16(zero);
    zero_points_[at] = static_cast<std::uint8_t>(zero);
  }

  [[noreturn]] void refuse(std::uint64_t element, std::string_view problem) const {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: element {} {} and cannot be quantized; --keep '{}=f32' stores the tensor as it is", name_, element, problem, name_));
  }

  std::string name_;
  BlobPtr elements_;
  Groups groups_;
  std::uint64_t count_;
  mutable std::once_flag once_;
  mutable std::vector<std::uint16_t> scales_;
  mutable std::vector<std::uint16_t> zeros_;
  mutable std::vector<float> factors_;
  mutable std::vector<std::uint8_t> zero_points_;
};

class GroupNumbersBlob final : public Blob {
 public:
  enum class What { scales, zeros };
  GroupNumbersBlob(std::shared_ptr<const GroupScales> scales, What what) : scales_(std::move(scales)), what_(what) {}

  std::uint64_t size() const override { return scales_->count() * sizeof(std::uint16_t); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto& numbers = what_ == What::scales ? scales_->scales() : scales_->zeros();
    std::ranges::copy(std::as_bytes(std::span(numbers)).subspan(static_cast<std::size_t>(offset), out.size()), out.begin());
  }

 private:
  std::shared_ptr<const GroupScales> scales_;
  What what_;
};

class GroupCodesBlob final : public Blob {
 public:
  GroupCodesBlob(BlobPtr elements, const Groups& groups, std::shared_ptr<const GroupScales> scales, std::shared_ptr<QuantizationReport> report)
      : elements_(std::move(elements)),
        groups_(groups),
        codes_a_byte_(8 / groups.bits),
        scales_(std::move(scales)),
        report_(std::move(report)),
        counted_(elements_->size() / sizeof(float)) {}

  std::uint64_t size() const override { return elements_->size() / sizeof(float) / codes_a_byte_; }
  bool seekable() const override { return elements_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<float, kBlock> numbers;
    std::array<std::byte, kBlock> codes;
    QuantizationError error;
    while (!out.empty()) {
      const std::uint64_t first = offset * codes_a_byte_;
      const std::size_t count = std::min(out.size() * codes_a_byte_, kBlock);
      const auto block = std::span(numbers).first(count);
      elements_->read(first * sizeof(float), std::as_writable_bytes(block));
      const QuantizationError lost = encode(first, block, codes.data());
      if (counted_.first_time(first)) error.merge(lost);
      if (codes_a_byte_ == 1) {
        std::copy_n(codes.begin(), count, out.begin());
      } else {
        pack_nibbles(codes.data(), count, out.data());
      }
      offset += count / codes_a_byte_;
      out = out.subspan(count / codes_a_byte_);
    }
    if (report_) report_->add(error);
  }

 private:
  // Group by group; the first and the last may be cut.
  QuantizationError encode(std::uint64_t first, std::span<const float> numbers, std::byte* codes) const {
    QuantizationError error;
    while (!numbers.empty()) {
      const auto group = static_cast<std::size_t>(first / groups_.size);
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(numbers.size(), groups_.size - first % groups_.size));
      const float scale = scales_->factor(group);
      const int zero = scales_->zero_point(group);
      if (scale > 0) {
        error.merge(quantize_linear(numbers.data(), count, scale, {-zero, scales_->largest_code() - zero, zero}, codes));
      } else {
        std::fill_n(codes, count, static_cast<std::byte>(zero));
        for (const float number : numbers.first(count)) error.merge(all_of(static_cast<double>(number)));
      }
      first += count;
      codes += count;
      numbers = numbers.subspan(count);
    }
    return error;
  }

  static QuantizationError all_of(double value) {
    QuantizationError error;
    error.values = 1;
    error.worst = std::abs(value);
    error.squared_error = error.squared_values = value * value;
    return error;
  }

  BlobPtr elements_;
  Groups groups_;
  std::size_t codes_a_byte_;
  std::shared_ptr<const GroupScales> scales_;
  std::shared_ptr<QuantizationReport> report_;
  mutable CountedBlocks counted_;
};

Part part_of(std::string role, DType dtype, BlobPtr blob) {
  return {.role = std::move(role), .dtype = dtype, .dtype_name = std::string(to_string(dtype)), .blob = std::move(blob), .digest = {}};
}

}  // namespace

std::optional<std::uint64_t> group_size_for(const Groups& groups, std::uint64_t row) {
  for (Groups smaller = groups; is_group_size(smaller); smaller.size /= 2) {
    if (row % smaller.size == 0) return smaller.size;
    if (smaller.size % 2 != 0) break;
  }
  return std::nullopt;
}

Tensor quantize_groups(const Tensor& tensor, const Groups& groups, std::shared_ptr<QuantizationReport> report) {
  const auto size = group_size_for(groups, tensor.shape.back());
  if (!size) {
    throw Error(ErrorKind::unsupported, fmt::format("tensor {}: rows of {} elements make no whole groups of {}; --keep '{}=f16' stores the tensor as it is",
                                                    tensor.name, tensor.shape.back(), groups.size, tensor.name));
  }
  const Groups fitting{groups.bits, *size};
  const BlobPtr elements = dense_blob(tensor, DType::f32);
  const auto scales = std::make_shared<const GroupScales>(tensor.name, elements, fitting);
  Tensor quantized;
  quantized.name = tensor.name;
  quantized.shape = tensor.shape;
  quantized.layout = Layout::quantized_group;
  quantized.attributes = {{"bits", std::uint64_t{groups.bits}}, {"group_size", *size}, {"packing", fmt::format("{}_per_i32", 32 / groups.bits)}};
  quantized.parts.push_back(part_of("packed_weight", DType::i32, std::make_shared<GroupCodesBlob>(elements, fitting, scales, std::move(report))));
  quantized.parts.push_back(part_of("scales", DType::f16, std::make_shared<GroupNumbersBlob>(scales, GroupNumbersBlob::What::scales)));
  quantized.parts.push_back(part_of("zeros", DType::f16, std::make_shared<GroupNumbersBlob>(scales, GroupNumbersBlob::What::zeros)));
  return quantized;
}

}  // namespace poise
