// Chooses grid points for numbers, for the encoders of IQ1 to IQ3. Highway compiles this for each kind of processor.
#if defined(POISE_GRID_POINTS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_GRID_POINTS
#undef POISE_GRID_POINTS
#else
#define POISE_GRID_POINTS
#endif

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "codec/blocks/grid_neighbours.hpp"
#include "codec/blocks/searches-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;

// Holds rows whose importance is scaled to a usual size, because products with a huge or tiny importance would overflow
// or underflow in the searches. The factor is a power of 4, so that sums and square roots of weights round as before.
class ScaledRows {
 public:
  explicit ScaledRows(const BlockRows& rows) : rows_(rows) {
    constexpr int kUsual = 40;  // weights stay as they are if the largest is from 2^-40 to below 2^41
    if (rows.importance == nullptr || rows.row_length == 0) return;
    const std::span<const float> weights(rows.importance, rows.row_length);
    const float largest = *std::max_element(weights.begin(), weights.end());
    if (!(largest > 0) || !std::isfinite(largest)) return;
    const int exponent = std::ilogb(largest);
    if (std::abs(exponent) <= kUsual) return;
    const float factor = std::ldexp(1.0F, std::clamp(-exponent / 2 * 2, -126, 126));
    for (const float weight : weights) scaled_.push_back(weight * factor);
    rows_.importance = scaled_.data();
  }
  ScaledRows(const ScaledRows&) = delete;
  ScaledRows& operator=(const ScaledRows&) = delete;

  const BlockRows& get() const { return rows_; }

 private:
  BlockRows rows_;
  std::vector<float> scaled_;
};

// Marks a point whose place (rounded coordinates) was not in the grid.
constexpr std::uint32_t kOffGrid = 1U << 31;

// Holds the numbers that the levels of a coordinate stand for. A grid of three levels has them twice, at 0 to 2 and 4
// to 6, because a lookup uses three bits of a word, and the third bit is not a part of the level.
using LevelNumbers = std::array<float, 8>;

template <int kLevels>
constexpr std::size_t kLevelBits = kLevels == 3 ? 2 : 3;

// Refers to numbers of one lane, `stride` apart, and the weights of their errors.
struct LaneNumbers {
  const float* x;
  const float* weights;
  std::size_t stride;
};

// Returns the first point of a list with the least weighted squared error of scale * coordinates from x. Adds errors in
// the order of the coordinates.
template <std::size_t kCoordinates, int kLevels>
HWY_INLINE std::uint32_t FindNearestPoint(std::span<const std::uint32_t> list, const LaneNumbers& numbers, float scale,
                                          const LevelNumbers& levels) {
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE && HWY_MAX_BYTES >= 32
  const hn::CappedTag<float, 8> eight;
  const hn::RebindToUnsigned<decltype(eight)> words;
  const hn::RebindToSigned<decltype(eight)> integers;
  hn::Vec<decltype(eight)> losses[kCoordinates];  // of each level
  const auto scaled = hn::Mul(hn::Set(eight, scale), hn::LoadU(eight, levels.data()));
  for (std::size_t i = 0; i < kCoordinates; ++i) {
    const auto difference = hn::Sub(scaled, hn::Set(eight, numbers.x[i * numbers.stride]));
    losses[i] = hn::Mul(hn::Mul(hn::Set(eight, numbers.weights[i * numbers.stride]), difference), difference);
  }
  auto least = hn::Set(eight, std::numeric_limits<float>::max());
  auto place = hn::Iota(integers, 0);
  auto best = place;
  const auto step = hn::Set(integers, 8);
  const auto low = hn::Set(words, 7);
  for (std::size_t j = 0; j < list.size(); j += 8) {
    auto word = hn::LoadU(words, list.data() + j);
    auto sum = hn::Zero(eight);
    for (std::size_t i = 0; i < kCoordinates; ++i) {
      const auto at = hn::BitCast(integers, hn::And(word, low));
      sum = hn::Add(sum, hn::TableLookupLanes(losses[i], hn::IndicesFromVec(eight, at)));
      word = hn::ShiftRight<static_cast<int>(kLevelBits<kLevels>)>(word);
    }
    const auto better = hn::Lt(sum, least);
    least = hn::IfThenElse(better, sum, least);
    best = hn::IfThenElse(hn::RebindMask(integers, better), place, best);
    place = hn::Add(place, step);
  }
  const auto among = hn::RebindMask(integers, hn::Eq(least, hn::MinOfLanes(eight, least)));
  const auto last = hn::Set(integers, std::numeric_limits<std::int32_t>::max());
  return list[static_cast<std::size_t>(hn::GetLane(hn::MinOfLanes(integers, hn::IfThenElse(among, best, last))))];
#else
  float losses[kCoordinates][kLevels];
  for (std::size_t i = 0; i < kCoordinates; ++i) {
    for (std::size_t level = 0; level < kLevels; ++level) {
      const float difference = scale * levels[level] - numbers.x[i * numbers.stride];
      losses[i][level] = numbers.weights[i * numbers.stride] * difference * difference;
    }
  }
  float least = std::numeric_limits<float>::max();
  std::uint32_t best = list.front();
  for (const std::uint32_t word : list) {
    float sum = 0;
    for (std::size_t i = 0; i < kCoordinates; ++i)
      sum += losses[i][word >> (kLevelBits<kLevels> * i) & ((1U << kLevelBits<kLevels>)-1)];
    if (sum < least) {
      least = sum;
      best = word;
    }
  }
  return best;
#endif
}

// Returns the level of coordinate i of points.
template <int kLevels>
HWY_INLINE Codes GetLevel(hn::Vec<Words> points, std::size_t i) {
  const auto shifted = hn::ShiftRightSame(points, static_cast<int>(kLevelBits<kLevels> * i));
  return hn::BitCast(Integers(), hn::And(shifted, hn::Set(Words(), (1U << kLevelBits<kLevels>)-1)));
}
HWY_INLINE Codes GetIndex(hn::Vec<Words> points) {
  const auto index = hn::ShiftRight<static_cast<int>(GridNeighbours::kIndexShift)>(points);
  return hn::BitCast(Integers(), hn::And(index, hn::Set(Words(), 0x7fff)));
}

// Computes the number of a place from its coordinates: level(i) returns coordinate i of each lane.
template <std::size_t kCoordinates, int kLevels, typename Level>
HWY_INLINE Codes ComputePlace(Level level) {
  auto place = SetCode(0);
  for (std::size_t i = kCoordinates; i-- > 0;) {
    if constexpr (kLevels == 3) {
      place = hn::Add(hn::Add(place, place), hn::Add(place, level(i)));
    } else {
      place = hn::Add(hn::ShiftLeft<3>(place), level(i));
    }
  }
  return place;
}

// Chooses a point for the place in each lane: the place itself, if it is a point, or the best point of its list. Lanes
// where `wanted` is false get any point. levels(lane) returns the numbers of the levels.
template <std::size_t kCoordinates, int kLevels, typename LevelsOf>
HWY_INLINE hn::Vec<Words> ChoosePoints(const GridNeighbours& grid, Codes places, const float* x, const float* weights,
                                       Numbers scales, Choice wanted, LevelsOf levels) {
  HWY_ALIGN std::int32_t all_places[kMaxLanes];
  HWY_ALIGN float all_scales[kMaxLanes];
  HWY_ALIGN std::uint32_t points[kMaxLanes];
  const std::size_t lanes = hn::Lanes(Floats());
  hn::Store(hn::IfThenElseZero(hn::RebindMask(Integers(), wanted), places), Integers(), all_places);
  hn::Store(scales, Floats(), all_scales);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto list = grid.find_list(static_cast<std::size_t>(all_places[lane]));
    points[lane] = list.size() == 1
                       ? list.front()
                       : kOffGrid | FindNearestPoint<kCoordinates, kLevels>(list, {x + lane, weights + lane, lanes},
                                                                            all_scales[lane], levels(lane));
  }
  return hn::Load(Words(), points);
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
