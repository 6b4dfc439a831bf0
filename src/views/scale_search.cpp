// Finds the clipping scale of least squared error in a histogram of magnitudes: 2048 bins to each power of two, so that
// a bin is narrower than any code it may fall on. Counts are integers, so the order of the threads does not matter.
#include "views/scale_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "codec/affine.hpp"
#include "codec/quantize_kernels.hpp"
#include "io/read_fully.hpp"
#include "views/block_size.hpp"

namespace poise {
namespace {

namespace tbb = oneapi::tbb;

constexpr std::size_t kChunk = 1 << 16;  // per task of a thread
constexpr std::uint32_t kMagnitude = 0x7fffffff;
constexpr std::uint32_t kInfiniteBits = 0x7f800000;

constexpr unsigned kBinShift = 23 - 11;
constexpr std::size_t kBins = kInfiniteBits >> kBinShift;

struct Summary {
  Extremes extremes = {0, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  std::uint64_t bad = std::numeric_limits<std::uint64_t>::max();  // the first element that is not finite
  std::vector<std::uint64_t> bins;                                // by magnitude; empty unless wanted

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

Summary empty_summary(bool with_bins) {
  Summary summary;
  if (with_bins) summary.bins.resize(kBins);
  return summary;
}

Summary summarize_seekable(const Blob& elements, bool with_bins) {
  tbb::enumerable_thread_specific<Summary> summaries([&] { return empty_summary(with_bins); });
  const std::uint64_t count = elements.size() / sizeof(float);
  const auto look_at = [&](const tbb::blocked_range<std::uint64_t>& range) {
    std::array<float, kBlockSize> values;
    Summary& summary = summaries.local();
    for (std::uint64_t first = range.begin(); first < range.end(); first += kBlockSize) {
      const auto part =
          std::span(values).first(static_cast<std::size_t>(std::min<std::uint64_t>(kBlockSize, range.end() - first)));
      elements.read(first * sizeof(float), std::as_writable_bytes(part));
      summary.add(first, part);
    }
  };
  // Isolated: a thread that waits here must not take other work that may ask for this scale.
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for(tbb::blocked_range<std::uint64_t>(0, count, kChunk), look_at); });
  Summary all = empty_summary(with_bins);
  for (const Summary& summary : summaries) all.merge(summary);
  return all;
}

Summary summarize_stream(const Blob& elements, bool with_bins) {
  Summary all = empty_summary(with_bins);
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

// The squared error of clipping at a magnitude, from a histogram.
class ClippingError {
 public:
  ClippingError(const std::vector<std::uint64_t>& bins, int levels) : levels_(static_cast<double>(levels)) {
    for (std::size_t i = 0; i < bins.size(); ++i) {
      if (bins[i] == 0) continue;
      const auto middle = static_cast<std::uint32_t>(i << kBinShift) | (1U << (kBinShift - 1));
      points_.push_back({static_cast<double>(std::bit_cast<float>(middle)), static_cast<double>(bins[i])});
    }
  }

  double at(double clip) const {
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

// Tries clipping magnitudes from the largest down to a thousandth of it, then finer around the best.
double best_clip(const ClippingError& error, double largest) {
  constexpr int kStepsPerOctave = 16;
  constexpr int kOctaves = 10;
  constexpr int kRounds = 3;
  double best = largest;
  double least = error.at(largest);
  const auto consider = [&](double clip) {
    if (clip > largest) return;
    const double found = error.at(clip);
    if (found >= least) return;
    least = found;
    best = clip;
  };
  double step = 1.0 / kStepsPerOctave;  // in octaves
  for (int i = 1; i <= kStepsPerOctave * kOctaves; ++i) consider(largest * std::exp2(-i * step));
  for (int round = 0; round < kRounds; ++round) {
    const double center = best;
    for (int i = -8; i <= 8; ++i) consider(center * std::exp2(i * step / 8));
    step /= 8;
  }
  return best;
}

Affine symmetric(double largest, int levels) {
  return {.delta = static_cast<float>(largest / levels), .min = 0, .max = 0, .packed = false};
}

}  // namespace

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
  const CodeFormat format = code_format(type.dtype, {});
  Affine affine = symmetric(largest, format.largest());
  // A range needs two different ends; a constant tensor uses the symmetric rule.
  if (type.scale == ScaleRule::range && summary.extremes.min < summary.extremes.max) {
    const double delta =
        (static_cast<double>(summary.extremes.max) - static_cast<double>(summary.extremes.min)) / format.span();
    affine = {
        .delta = static_cast<float>(delta), .min = summary.extremes.min, .max = summary.extremes.max, .packed = false};
  }
  if (with_bins && largest > 0)
    affine = symmetric(best_clip(ClippingError(summary.bins, format.largest()), largest), format.largest());
  affine.packed = type.dtype == DType::qint4;
  return affine;
}

}  // namespace poise
