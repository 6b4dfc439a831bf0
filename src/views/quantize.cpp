#include "views/affine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "bytes/checked.hpp"
#include "codec/affine.hpp"
#include "codec/quantize_kernels.hpp"
#include "io/meter.hpp"
#include "io/read_fully.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/groups.hpp"

namespace poise {
namespace {

// A histogram of magnitudes shows which clipping scale has the least squared error. It has 2048 bins for each power of
// two, so that a bin is narrower than the distance between codes. Counts are integers, so the order of the threads does
// not matter.

namespace tbb = oneapi::tbb;

constexpr std::size_t kChunk = 1 << 16;  // elements in a task of a thread
constexpr std::uint32_t kMagnitude = 0x7fffffff;
constexpr std::uint32_t kInfiniteBits = 0x7f800000;

constexpr unsigned kBinShift = 23 - 11;
constexpr std::size_t kBins = kInfiniteBits >> kBinShift;

struct Summary {
  Extremes extremes = {0, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  std::uint64_t bad = std::numeric_limits<std::uint64_t>::max();  // the first element that is not finite
  std::vector<std::uint64_t> bins;                                // counts by magnitude; empty if not wanted

  void add(std::uint64_t first, std::span<const float> values) {
    const Extremes found = find_extremes(values.data(), values.size());
    extremes.merge(found);
    if (found.largest >= kInfiniteBits) {
      const auto at = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
      bad = std::min(bad, first + static_cast<std::uint64_t>(at - values.begin()));
      return;
    }
    if (bins.empty()) return;
    for (const float value : values) ++bins[(std::bit_cast<std::uint32_t>(value) & kMagnitude) >> kBinShift];
  }

  void merge(const Summary& other) {
    extremes.merge(other.extremes);
    bad = std::min(bad, other.bad);
    for (std::size_t i = 0; i < bins.size(); ++i) bins[i] += other.bins[i];
  }
};

Summary make_empty_summary(bool with_bins) {
  Summary summary;
  if (with_bins) summary.bins.resize(kBins);
  return summary;
}

Summary summarize_seekable(const Blob& elements, bool with_bins) {
  tbb::enumerable_thread_specific<Summary> summaries([&] { return make_empty_summary(with_bins); });
  const std::uint64_t count = elements.size() / sizeof(float);
  const auto summarize_range = [&](const tbb::blocked_range<std::uint64_t>& range) {
    std::array<float, kBlockSize> values;
    Summary& summary = summaries.local();
    for (std::uint64_t first = range.begin(); first < range.end(); first += kBlockSize) {
      const auto part =
          std::span(values).first(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockSize, range.end() - first)));
      elements.read(first * sizeof(float), std::as_writable_bytes(part));
      summary.add(first, part);
    }
  };
  // The task is isolated: a thread that waits here must not take other work that may ask for this scale.
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, count, kChunk), summarize_range); });
  Summary all = make_empty_summary(with_bins);
  for (const Summary& summary : summaries) all.merge(summary);
  return all;
}

Summary summarize_stream(const Blob& elements, bool with_bins) {
  Summary all = make_empty_summary(with_bins);
  const auto stream = elements.stream();
  std::vector<float> values(kChunk);
  std::uint64_t first = 0;
  for (const std::uint64_t count = elements.size() / sizeof(float); first < count;) {
    const auto part = std::span(values).first(static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, count - first)));
    read_fully(*stream, std::as_writable_bytes(part));
    all.add(first, part);
    first += part.size();
  }
  return all;
}

// Computes the squared error of clipping at a magnitude, from a histogram.
class ClippingError {
 public:
  ClippingError(const std::vector<std::uint64_t>& bins, int levels) : levels_(static_cast<double>(levels)) {
    for (std::size_t i = 0; i < bins.size(); ++i) {
      if (bins[i] == 0) continue;
      const auto middle = static_cast<std::uint32_t>(i << kBinShift) | (1U << (kBinShift - 1));
      points_.push_back({static_cast<double>(std::bit_cast<float>(middle)), static_cast<double>(bins[i])});
    }
  }

  double compute(double clip) const {
    const double delta = clip / levels_;
    double sum = 0;
    for (const Point& point : points_) {
      const double error = point.magnitude - std::min(std::nearbyint(point.magnitude / delta), levels_) * delta;
      sum += point.count * error * error;
    }
    return sum;
  }

 private:
  struct Point {
    double magnitude;
    double count;
  };
  std::vector<Point> points_;
  double levels_;
};

// Returns the best clipping magnitude. Tries those from the largest down to a thousandth of it, then closer ones around
// the best.
double find_best_clip(const ClippingError& error, double largest) {
  constexpr int kStepsPerOctave = 16;
  constexpr int kOctaves = 10;
  constexpr int kRounds = 3;
  double best = largest;
  double least = error.compute(largest);
  const auto try_clip = [&](double clip) {
    if (clip > largest) return;
    const double found = error.compute(clip);
    if (found >= least) return;
    least = found;
    best = clip;
  };
  double step = 1.0 / kStepsPerOctave;  // in octaves
  for (int i = 1; i <= kStepsPerOctave * kOctaves; ++i) try_clip(largest * std::exp2(-i * step));
  for (int round = 0; round < kRounds; ++round) {
    const double center = best;
    for (int i = -8; i <= 8; ++i) try_clip(center * std::exp2(i * step / 8));
    step /= 8;
  }
  return best;
}

Affine make_symmetric_scale(double largest, int levels) {
  return {.delta = static_cast<float>(largest / levels), .min = 0, .max = 0, .packed = false};
}

// Returns the scale for float32 elements, in one pass over them. The result does not depend on the number of threads.
// Throws unsupported, naming tensor and index, when an element is infinite or NaN. Requires: type.dtype is qint8 or
// qint4.
Affine find_scale(const std::string& name, const Blob& elements, const StoredType& type) {
  const bool with_bins = type.scale == ScaleRule::least_squares;
  const Summary summary =
      elements.seekable() ? summarize_seekable(elements, with_bins) : summarize_stream(elements, with_bins);
  if (summary.extremes.largest >= kInfiniteBits) {
    throw Error(ErrorKind::unsupported,
                fmt::format("tensor {}: element {} is not finite and cannot be quantized", name, summary.bad))
        .with({.kind = Remedy::Kind::keep, .value = "f32", .tensor = name});
  }
  const double largest = static_cast<double>(std::bit_cast<float>(summary.extremes.largest));
  const CodeFormat format = get_code_format(type.dtype, {});
  Affine affine = make_symmetric_scale(largest, format.get_largest_symmetric());
  // A range needs different ends, so a constant tensor uses the symmetric rule.
  if (type.scale == ScaleRule::range && summary.extremes.min < summary.extremes.max) {
    const double delta = (static_cast<double>(summary.extremes.max) - static_cast<double>(summary.extremes.min)) /
                         format.get_largest_unsigned();
    affine = {
        .delta = static_cast<float>(delta), .min = summary.extremes.min, .max = summary.extremes.max, .packed = false};
  }
  if (with_bins && largest > 0)
    affine = make_symmetric_scale(find_best_clip(ClippingError(summary.bins, format.get_largest_symmetric()), largest),
                                  format.get_largest_symmetric());
  affine.packed = type.dtype == DType::qint4;
  return affine;
}

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

// Encodes numbers as codes, one a byte. Requires: the numbers are finite.
class Encoder {
 public:
  Encoder(DType dtype, const Affine& affine) : affine_(affine), format_(get_code_format(dtype, affine)) {}

  QuantizationError encode(std::span<const float> numbers, std::span<std::byte> codes) const {
    if (affine_.delta == 0) return encode_as_zeros(numbers, codes);
    if (format_.is_unsigned) return encode_range(numbers, codes);
    return quantize_linear(numbers.data(), numbers.size(), affine_.delta,
                           {-format_.get_largest_symmetric(), format_.get_largest_symmetric(), 0}, codes.data());
  }

 private:
  static QuantizationError encode_as_zeros(std::span<const float> numbers, std::span<std::byte> codes) {
    QuantizationError error;
    error.values = numbers.size();
    std::ranges::fill(codes, std::byte{0});
    for (const float number : numbers) add_loss(error, static_cast<double>(number), static_cast<double>(number));
    return error;
  }

  // Computes in float64: the difference of two float32 numbers may overflow float32.
  QuantizationError encode_range(std::span<const float> numbers, std::span<std::byte> codes) const {
    QuantizationError error;
    error.values = numbers.size();
    const auto min = static_cast<double>(affine_.min);
    const auto delta = static_cast<double>(affine_.delta);
    const double limit = format_.get_largest_unsigned();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = static_cast<double>(numbers[i]);
      const double code = std::nearbyint(std::clamp((number - min) / delta, 0.0, limit));
      codes[i] = static_cast<std::byte>(static_cast<unsigned>(code));
      add_loss(error, number, number - static_cast<double>(static_cast<float>(min + code * delta)));
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
  // Throws unsupported: the largest code times the scale overflows float32, although the number itself does not.
  [[noreturn]] void refuse(std::uint64_t element) const {
    throw Error(ErrorKind::unsupported, fmt::format("tensor {}: elements from {} on become codes of numbers that are "
                                                    "not finite, because they are as large as float32 allows",
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

constexpr std::uint64_t kPieceBytes = 64 << 10;  // bytes of codes that a thread makes at once

// Returns why rows do not fit blocks of the type; empty if they do.
std::string find_row_fault(const Shape& shape, const BlockType& type) {
  if (shape.empty()) return "it has no rows, and a block is a part of a row";
  if (shape.back() % type.elements == 0) return {};
  return fmt::format("its rows of {} elements are not whole blocks of {}, which {} has", shape.back(), type.elements,
                     type.name);
}

// Returns a blob with all bytes in memory. Makes them on all processors if the blob is seekable.
BlobPtr load_into_memory(const Blob& blob, const std::string& name, Meter& meter) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(blob.size()));
  if (!blob.seekable() || bytes.empty()) {
    read_fully(*blob.stream(), bytes);
  } else {
    const std::uint64_t grain = blob.grain();
    const std::uint64_t piece = std::max<std::uint64_t>(1, kPieceBytes / grain) * grain;
    const std::uint64_t pieces = (bytes.size() + piece - 1) / piece;
    tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, pieces), [&](const auto& range) {
      const std::uint64_t begin = range.begin() * piece;
      const std::uint64_t end = std::min<std::uint64_t>(bytes.size(), range.end() * piece);
      blob.read(begin,
                std::span(bytes).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      meter.advance(end - begin, name);
    });
  }
  return make_memory_blob(std::move(bytes), name);
}

}  // namespace

Tensor quantize(const Tensor& tensor, const StoredType& type, LossyBlobPtr<QuantizationError>* codes) {
  if (const BlockType* blocks = get_block_type(type)) return quantize_to_blocks(tensor, *blocks, nullptr, codes);
  if (type.grouped()) return quantize_groups(tensor, type.groups, codes);
  const BlobPtr elements = make_dense_blob(tensor, DType::f32);
  const auto affine = std::make_shared<ScaleOfElements>(tensor.name, elements, type);
  const auto blob = std::make_shared<const QuantizedBlob>(tensor.name, elements, type.dtype, affine);
  if (codes != nullptr) *codes = blob;
  Tensor quantized = make_dense(tensor.name, tensor.shape, type.dtype, blob);
  quantized.layout = std::shared_ptr<const AffineSource>(affine);
  if (tensor.layout == Layout::dense)
    quantized.attributes = tensor.attributes;  // the attributes of other layouts may describe their parts
  return quantized;
}

Tensor quantized(const Tensor& tensor, const StoredType& type, const Progress& progress) {
  const auto refuse = [&](ErrorKind kind, const std::string& why) {
    throw Error(kind, fmt::format("tensor {}: {}", tensor.name, why));
  };
  if (!type.quantized()) refuse(ErrorKind::bad_argument, fmt::format("{} has no codes", to_string(type)));
  if (!has_float_elements(tensor))
    refuse(ErrorKind::unsupported,
           fmt::format("it is stored as {}, which Poise cannot decode to floating-point numbers",
                       describe_storage(tensor)));
  if (const BlockType* blocks = get_block_type(type)) {
    if (blocks->encode == nullptr)
      refuse(ErrorKind::bad_argument, fmt::format("Poise reads {}, but cannot write it", to_string(type)));
    if (const std::string fault = find_row_fault(tensor.shape, *blocks); !fault.empty())
      refuse(ErrorKind::unsupported, fault);
  }
  if (type.grouped() && tensor.shape.empty())
    refuse(ErrorKind::unsupported, "it has no rows, and a group is a part of a row");
  Tensor codes = quantize(tensor, type);
  std::uint64_t total = 0;
  for (const Part& part : codes.parts) total += part.blob->size();
  Meter meter(progress, total);
  for (Part& part : codes.parts) part.blob = load_into_memory(*part.blob, tensor.name, meter);
  if (const AffineSource* scale = codes.layout.affine()) codes.layout = make_affine(scale->get());
  return codes;
}

Tensor make_block_tensor(std::string name, Shape shape, std::string_view type, std::vector<std::byte> blocks) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::bad_argument, fmt::format("tensor {}: {}", name, why));
  };
  const BlockType* const blocks_type = find_named_block_type(type);
  if (blocks_type == nullptr) refuse(fmt::format("\"{}\" is not a type of blocks", type));
  if (const std::string fault = find_row_fault(shape, *blocks_type); !fault.empty()) refuse(fault);
  const auto elements = element_count(shape);
  const auto bytes = elements ? checked_mul(*elements / blocks_type->elements, blocks_type->bytes) : std::nullopt;
  if (bytes != blocks.size())
    refuse(fmt::format("{} bytes are the wrong size for {} {}", blocks.size(), type, to_string(shape)));
  BlobPtr data = make_memory_blob(std::move(blocks), name);
  return make_blocks(std::move(name), std::move(shape), *blocks_type, std::move(data));
}

}  // namespace poise
