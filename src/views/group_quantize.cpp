#include "views/groups.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "codec/quantize_kernels.hpp"
#include "io/read_fully.hpp"
#include "io/threads.hpp"
#include "numeric/float_formats.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

namespace tbb = oneapi::tbb;

constexpr std::size_t kMostGroups =
    kBlockSize / 4;                          // groups in a block of elements: the smallest group is a word with 4 codes
constexpr std::size_t kGroupsPerTask = 512;  // groups in a task of a thread
constexpr std::uint32_t kInfinity = 0x7f800000;
constexpr std::uint16_t kSmallestHalf = 1;  // 2^-24

// Describes how the numbers of a group become codes: code = round(number / factor) + zero.
struct GroupScale {
  std::uint16_t half;  // the stored factor: float16
  std::uint8_t zero;
};

// Computes the scale and zero point of each group on first use. Two threads may both compute those of the same group.
class GroupScales {
 public:
  GroupScales(std::string name, BlobPtr elements, const Groups& groups)
      : name_(std::move(name)),
        elements_(std::move(elements)),
        groups_(groups),
        count_(elements_->size() / sizeof(float) / groups.size) {}

  std::uint64_t count() const { return count_; }
  int largest_code() const { return (1 << groups_.bits) - 1; }

  // Holds the scales that have been computed. After GroupScales::release(), a new table computes them again.
  class Table {
   public:
    explicit Table(const GroupScales& scales) : scales_(scales), found_(static_cast<std::size_t>(scales.count_)) {}

    // Fills `scales` with the scales of the groups from `first` on. `numbers` has the numbers of these groups. Throws
    // unsupported for a number that is not finite or too large.
    void find_or_compute_scales(std::uint64_t first, std::span<const float> numbers, std::span<GroupScale> scales) {
      const auto found = std::span(found_).subspan(static_cast<std::size_t>(first), scales.size());
      bool all = true;
      for (std::size_t i = 0; i < found.size() && all; ++i) {
        const std::uint32_t bits = found[i].load(std::memory_order_relaxed);
        scales[i] = unpack(bits);
        all = bits != 0;
      }
      if (all) return;
      scales_.compute_scales(first, numbers, scales);
      for (std::size_t i = 0; i < found.size(); ++i) found[i].store(pack(scales[i]), std::memory_order_relaxed);
    }

    // Returns the scale of a group; reads its numbers if necessary.
    GroupScale find_or_compute_scale(std::uint64_t g) {
      if (const std::uint32_t bits = found_[static_cast<std::size_t>(g)].load(std::memory_order_relaxed); bits != 0)
        return unpack(bits);
      if (!scales_.elements_->seekable()) {
        compute_all();  // a stream can only be read from its beginning
        return find_or_compute_scale(g);
      }
      const auto size = static_cast<std::size_t>(scales_.groups_.size);
      std::vector<float> numbers(size);
      scales_.elements_->read(g * size * sizeof(float), std::as_writable_bytes(std::span(numbers)));
      GroupScale scale;
      find_or_compute_scales(g, numbers, std::span(&scale, 1));
      return scale;
    }

    // Computes the missing scales. The first call does the work; other calls wait for it.
    void compute_all() {
      std::call_once(all_, [this] {
        if (!scales_.elements_->seekable()) return compute_all_from_stream();
        const auto compute_range = [this](const tbb::blocked_range<std::uint64_t>& range) {
          for (std::uint64_t g = range.begin(); g < range.end(); ++g) find_or_compute_scale(g);
        };
        // The task is isolated: a thread that waits here must not take other work that may ask for these scales.
        tbb::this_task_arena::isolate([&] {
          tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, scales_.count_, kGroupsPerTask), compute_range);
        });
      });
    }

   private:
    static constexpr std::uint32_t kKnown = 1U << 31;

    static std::uint32_t pack(const GroupScale& scale) { return kKnown | std::uint32_t{scale.zero} << 16 | scale.half; }
    static GroupScale unpack(std::uint32_t bits) {
      return {static_cast<std::uint16_t>(bits), static_cast<std::uint8_t>(bits >> 16)};
    }

    void compute_all_from_stream() {
      const auto stream = scales_.elements_->stream();
      std::vector<float> numbers(static_cast<std::size_t>(scales_.groups_.size));
      for (std::uint64_t g = 0; g < scales_.count_; ++g) {
        read_fully(*stream, std::as_writable_bytes(std::span(numbers)));
        GroupScale scale;
        find_or_compute_scales(g, numbers, std::span(&scale, 1));
      }
    }

    const GroupScales& scales_;
    std::vector<std::atomic<std::uint32_t>> found_;  // kKnown, zero point, factor; 0: not yet computed
    std::once_flag all_;
  };

  std::shared_ptr<Table> get_table() const {
    return table_.get([this] { return std::make_shared<Table>(*this); });
  }

  void release() const { table_.release(); }

  bool seekable() const { return elements_->seekable(); }

 private:
  // Computes the scales of the groups from `first` on. Requires: at most kMostGroups groups.
  void compute_scales(std::uint64_t first, std::span<const float> numbers, std::span<GroupScale> scales) const {
    std::array<GroupRange, kMostGroups> ranges;
    if (find_group_ranges(numbers, std::span(ranges).first(scales.size())) >= kInfinity) {
      const auto bad = std::ranges::find_if(numbers, [](float value) { return !std::isfinite(value); });
      refuse(first * groups_.size + static_cast<std::uint64_t>(bad - numbers.begin()), "is not finite");
    }
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = compute_scale(first + i, ranges[i]);
  }

  GroupScale compute_scale(std::uint64_t g, const GroupRange& range) const {
    const double min = std::min(0.0, static_cast<double>(range.min));
    const double max = std::max(0.0, static_cast<double>(range.max));
    const double scale = (max - min) / largest_code();
    if (scale > kLargestF16) refuse(g * groups_.size, "begins a group whose numbers are too large for a float16 scale");
    // A scale of 0 would lose all numbers.
    const std::uint16_t half = scale > 0 ? std::max(kSmallestHalf, encode_f16(scale)) : std::uint16_t{0};
    const auto stored = static_cast<double>(decode_f16(half));
    const double zero =
        stored == 0 ? 0 : std::clamp(std::nearbyint((0.0 - min) / stored), 0.0, static_cast<double>(largest_code()));
    return {half, static_cast<std::uint8_t>(zero)};
  }

  [[noreturn]] void refuse(std::uint64_t element, std::string_view problem) const {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: element {} {} and cannot be quantized", name_, element, problem))
        .with({.kind = Remedy::Kind::keep, .value = "f32", .tensor = name_});
  }

  std::string name_;
  BlobPtr elements_;
  Groups groups_;
  std::uint64_t count_;
  LazyValue<Table> table_;
};

class GroupNumbersBlob final : public Blob {
 public:
  enum class What { scales, zeros };
  GroupNumbersBlob(std::shared_ptr<const GroupScales> scales, What what) : scales_(std::move(scales)), what_(what) {}

  std::uint64_t size() const override { return scales_->count() * sizeof(std::uint16_t); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto table = scales_->get_table();
    table->compute_all();
    const bool is_last = what_ == What::zeros && offset + out.size() == size();
    std::array<std::uint16_t, 1024> numbers;
    read_units(offset, out, sizeof numbers[0], numbers.size(), [&](std::uint64_t first, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) numbers[i] = get_half(table->find_or_compute_scale(first + i));
      return std::as_bytes(std::span(numbers).first(count));
    });
    if (is_last) scales_->release();  // writers read this part last, and then need no scales of the tensor
  }
  bool seekable() const override { return scales_->seekable(); }

 private:
  // Returns a table of all zero points as float16.
  static std::array<std::uint16_t, 256> make_zero_table() {
    std::array<std::uint16_t, 256> zeros{};
    for (std::size_t zero = 0; zero < zeros.size(); ++zero) zeros[zero] = encode_f16(static_cast<double>(zero));
    return zeros;
  }

  std::uint16_t get_half(const GroupScale& scale) const {
    return what_ == What::scales ? scale.half : zeros_[scale.zero];
  }

  std::shared_ptr<const GroupScales> scales_;
  What what_;
  std::array<std::uint16_t, 256> zeros_ = make_zero_table();
};

class GroupCodesBlob final : public LossyBlob<QuantizationError> {
 public:
  GroupCodesBlob(BlobPtr elements, const Groups& groups, std::shared_ptr<const GroupScales> scales)
      : elements_(std::move(elements)), groups_(groups), codes_a_byte_(8 / groups.bits), scales_(std::move(scales)) {}

  std::uint64_t size() const override { return elements_->size() / sizeof(float) / codes_a_byte_; }
  bool seekable() const override { return elements_->seekable(); }

  void read_measured(std::uint64_t offset, std::span<std::byte> out, QuantizationError* loss) const override {
    QuantizationError ignored;
    QuantizationError& error = loss != nullptr ? *loss : ignored;
    const auto table = scales_->get_table();
    std::array<float, kBlockSize> numbers;
    std::array<std::byte, kBlockSize> codes;
    while (!out.empty()) {
      const std::uint64_t first = offset * codes_a_byte_;
      const std::size_t count = std::min(out.size() * codes_a_byte_, kBlockSize);
      const auto block = std::span(numbers).first(count);
      elements_->read(first * sizeof(float), std::as_writable_bytes(block));
      error.merge(encode(*table, first, block, codes.data()));
      if (codes_a_byte_ == 1) {
        std::copy_n(codes.begin(), count, out.begin());
      } else {
        pack_nibbles(codes.data(), count, out.data());
      }
      offset += count / codes_a_byte_;
      out = out.subspan(count / codes_a_byte_);
    }
  }

 private:
  // Encodes the elements from `first` on. They may begin or end within a group.
  QuantizationError encode(GroupScales::Table& table, std::uint64_t first, std::span<const float> numbers,
                           std::byte* codes) const {
    const auto size = static_cast<std::size_t>(groups_.size);
    std::uint64_t group = first / size;
    std::array<GroupScale, kMostGroups> scales;
    QuantizationError error;
    const auto encode_next = [&](std::size_t groups, std::size_t count) {
      error.merge(encode_groups(numbers.first(count), std::span(scales).first(groups), codes));
      group += groups;
      codes += count;
      numbers = numbers.subspan(count);
    };
    if (const auto passed = static_cast<std::size_t>(first % size); passed != 0) {
      scales[0] = table.find_or_compute_scale(group);
      encode_next(1, std::min(numbers.size(), size - passed));
    }
    if (const std::size_t whole = numbers.size() / size; whole != 0) {
      table.find_or_compute_scales(group, numbers.first(whole * size), std::span(scales).first(whole));
      encode_next(whole, whole * size);
    }
    if (!numbers.empty()) {
      scales[0] = table.find_or_compute_scale(group);
      encode_next(1, numbers.size());
    }
    return error;
  }

  // Encodes groups, one for each scale. All have the same number of elements.
  QuantizationError encode_groups(std::span<const float> numbers, std::span<const GroupScale> scales,
                                  std::byte* codes) const {
    const std::size_t size = numbers.size() / scales.size();
    std::array<GroupFactor, kMostGroups> factors;
    QuantizationError error;
    for (std::size_t begin = 0; begin < scales.size();) {
      std::size_t end = begin;
      for (; end < scales.size() && scales[end].half != 0; ++end)
        factors[end] = {decode_f16(scales[end].half), scales[end].zero};
      const auto run = numbers.subspan(begin * size, (end - begin) * size);
      if (end > begin)
        error.merge(quantize_groups_linear(run, std::span(factors).subspan(begin, end - begin), scales_->largest_code(),
                                           codes + begin * size));
      for (; end < scales.size() && scales[end].half == 0; ++end) {
        std::fill_n(codes + end * size, size, static_cast<std::byte>(scales[end].zero));
        error.values += size;
        for (const float number : numbers.subspan(end * size, size))
          add_loss(error, static_cast<double>(number), static_cast<double>(number));
      }
      begin = end;
    }
    return error;
  }

  BlobPtr elements_;
  Groups groups_;
  std::size_t codes_a_byte_;
  std::shared_ptr<const GroupScales> scales_;
};

}  // namespace

std::optional<std::uint64_t> find_group_size(const Groups& groups, std::uint64_t row) {
  for (Groups smaller = groups; is_group_size(smaller); smaller.size /= 2) {
    if (row % smaller.size == 0) return smaller.size;
    if (smaller.size % 2 != 0) break;
  }
  return std::nullopt;
}

Tensor quantize_groups(const Tensor& tensor, const Groups& groups, LossyBlobPtr<QuantizationError>* codes) {
  const auto size = find_group_size(groups, tensor.shape.back());
  if (!size) {
    throw Error(ErrorKind::unsupported, fmt::format("tensor {}: rows of {} elements are not whole groups of {}",
                                                    tensor.name, tensor.shape.back(), groups.size))
        .with({.kind = Remedy::Kind::keep, .value = "f16", .tensor = tensor.name});
  }
  const Groups fitting{groups.bits, *size};
  const BlobPtr elements = make_dense_blob(tensor, DType::f32);
  const auto scales = std::make_shared<const GroupScales>(tensor.name, elements, fitting);
  Tensor quantized;
  quantized.name = tensor.name;
  quantized.shape = tensor.shape;
  quantized.attributes = {{"bits", std::uint64_t{groups.bits}},
                          {"group_size", *size},
                          {"packing", fmt::format("{}_per_i32", 32 / groups.bits)}};
  const auto blob = std::make_shared<const GroupCodesBlob>(elements, fitting, scales);
  if (codes != nullptr) *codes = blob;
  using What = GroupNumbersBlob::What;
  quantized.parts = {
      {.role = "packed_weight", .dtype = DType::i32, .blob = blob},
      {.role = "scales", .dtype = DType::f16, .blob = std::make_shared<GroupNumbersBlob>(scales, What::scales)},
      {.role = "zeros", .dtype = DType::f16, .blob = std::make_shared<GroupNumbersBlob>(scales, What::zeros)}};
  quantized.layout = make_group_layout(read_group_scheme(quantized, GroupWords::zt1));
  return quantized;
}

}  // namespace poise
