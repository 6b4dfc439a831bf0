// Encodes IQ1_S and IQ1_M: eight neighbours become a point of a grid with the coordinates -1, 0 and 1. A bit states
// whether decoders add an eighth to the coordinates or subtract it.
//
// The rules are those of ggml/src/ggml-quants.c of llama.cpp v0.5.0. The encoder sorts the numbers of a group. The
// first become -1, the next 0, and the last 1. It tries all pairs of indices at which 0 and 1 may begin, with both
// signs of the eighth.
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/encode_ternary_grids.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/grid_points-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 256;

// -1, 0 and 1 stand for these numbers: an eighth is added, or subtracted.
constexpr LevelNumbers kPlus = {-0.875F, 0.125F, 1.125F, 0, -0.875F, 0.125F, 1.125F, 0};
constexpr LevelNumbers kMinus = {-1.125F, -0.125F, 0.875F, 0, -1.125F, -0.125F, 0.875F, 0};

HWY_INLINE Numbers GetLevelNumber(Choice minus, std::size_t level) {
  return hn::IfThenElse(minus, Set(kMinus[level]), Set(kPlus[level]));
}
HWY_INLINE Numbers LookUpLevel(Choice minus, Codes level) {
  const auto is = [&](int which) HWY_ATTR { return hn::RebindMask(Floats(), hn::Eq(level, SetCode(which))); };
  return hn::IfThenElse(is(0), GetLevelNumber(minus, 0),
                        hn::IfThenElse(is(1), GetLevelNumber(minus, 1), GetLevelNumber(minus, 2)));
}
HWY_INLINE Choice IsSet(Codes bits, int bit) {
  return hn::RebindMask(Floats(), hn::Ne(hn::And(bits, SetCode(bit)), SetCode(0)));
}

// Holds a group of numbers in each lane, in ascending order. Equal numbers keep their order.
template <std::size_t kSize>
struct SortedGroup {
  HWY_ALIGN float weights[kSize * kMaxLanes];
  HWY_ALIGN float sorted[kSize * kMaxLanes];
  HWY_ALIGN float sorted_weights[kSize * kMaxLanes];
  HWY_ALIGN float places[kSize * kMaxLanes];  // the index of each sorted number before sorting
  Numbers peak;                               // the largest magnitude

  // `importance` has the importance of the numbers `x`, or is null. `mean` is twice the mean square of the block.
  HWY_INLINE SortedGroup(const float* x, const float* importance, Numbers mean) : peak(hn::Abs(LoadAt(x, 0))) {
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto value = LoadAt(x, i);
      const auto square = hn::Mul(value, value);
      const auto weight =
          importance == nullptr ? square : hn::Mul(LoadAt(importance, i), hn::Sqrt(hn::Add(mean, square)));
      peak = hn::IfThenElse(hn::Gt(peak, hn::Abs(value)), peak, hn::Abs(value));
      StoreAt(weight, weights, i);
      StoreAt(value, sorted, i);
      StoreAt(weight, sorted_weights, i);
      StoreAt(Set(static_cast<float>(i)), places, i);
    }
    sort();
  }

 private:
  // Swaps sorted elements i and j if they are not in ascending order.
  HWY_INLINE void sort_two(std::size_t i, std::size_t j) {
    const auto first = LoadAt(sorted, i), second = LoadAt(sorted, j);
    const auto first_place = LoadAt(places, i), second_place = LoadAt(places, j);
    const auto swap = hn::Or(hn::Lt(second, first), Both(hn::Eq(second, first), hn::Lt(second_place, first_place)));
    const auto exchange = [&](float* lanes, Numbers low, Numbers high) HWY_ATTR {
      StoreAt(hn::IfThenElse(swap, high, low), lanes, i);
      StoreAt(hn::IfThenElse(swap, low, high), lanes, j);
    };
    exchange(sorted, first, second);
    exchange(places, first_place, second_place);
    exchange(sorted_weights, LoadAt(sorted_weights, i), LoadAt(sorted_weights, j));
  }

  // Sorts by Batcher's odd-even merge sort, which makes the same comparisons in all lanes.
  HWY_INLINE void sort() {
    for (std::size_t run = 1; run < kSize; run *= 2) {
      for (std::size_t step = run; step >= 1; step /= 2) {
        for (std::size_t j = step % run; j + step < kSize; j += 2 * step) {
          for (std::size_t i = j; i < std::min(j + step, kSize - step); ++i) {
            if (i / (2 * run) == (i + step) / (2 * run)) sort_two(i, i + step);
          }
        }
      }
    }
  }
};

// Holds the best split of a group: the sorted numbers [0, first) are -1, [first, second) 0, the others 1.
struct Split {
  Numbers score, scale;
  Codes first, second;  // -1: no split has a score
  Codes minus;          // bit i is set if an eighth is subtracted from the i-th eight numbers

  HWY_INLINE explicit Split(Numbers peak)
      : score(Set(std::numeric_limits<float>::lowest())),
        scale(peak),
        first(SetCode(-1)),
        second(first),
        minus(SetCode(0)) {}

  HWY_INLINE void offer(Numbers products, Numbers squares, std::size_t i, std::size_t j, int signs) {
    const auto better = Both(hn::Gt(squares, Zero()), hn::Gt(hn::Mul(products, products), hn::Mul(score, squares)));
    if (hn::AllFalse(Floats(), better)) return;
    scale = hn::IfThenElse(better, hn::Div(products, squares), scale);
    score = hn::IfThenElse(better, hn::Mul(scale, products), score);
    const auto codes = hn::RebindMask(Integers(), better);
    first = hn::IfThenElse(codes, SetCode(static_cast<int>(i)), first);
    second = hn::IfThenElse(codes, SetCode(static_cast<int>(j)), second);
    minus = hn::IfThenElse(codes, SetCode(signs), minus);
  }
};

// Tries all splits of a group, with one sign of the eighth for the whole group. Prefix sums make a try fast.
template <std::size_t kSize>
HWY_INLINE void TrySplitsOfOneSign(const SortedGroup<kSize>& group, int all_minus, Split& best) {
  HWY_ALIGN float products[(kSize + 1) * kMaxLanes];
  HWY_ALIGN float weights[(kSize + 1) * kMaxLanes];
  StoreAt(Zero(), products, 0);
  StoreAt(Zero(), weights, 0);
  for (std::size_t i = 0; i < kSize; ++i) {
    const auto weight = LoadAt(group.sorted_weights, i);
    StoreAt(hn::Add(LoadAt(products, i), hn::Mul(weight, LoadAt(group.sorted, i))), products, i + 1);
    StoreAt(hn::Add(LoadAt(weights, i), weight), weights, i + 1);
  }
  const auto square = [](Numbers weight, float level)
                          HWY_ATTR { return hn::Mul(hn::Mul(weight, Set(level)), Set(level)); };
  for (std::size_t i = 0; i <= kSize; ++i) {
    for (std::size_t j = i; j <= kSize; ++j) {
      const auto low = LoadAt(products, i), low_weight = LoadAt(weights, i);
      const auto middle = hn::Sub(LoadAt(products, j), LoadAt(products, i));
      const auto middle_weight = hn::Sub(LoadAt(weights, j), LoadAt(weights, i));
      const auto high = hn::Sub(LoadAt(products, kSize), LoadAt(products, j));
      const auto high_weight = hn::Sub(LoadAt(weights, kSize), LoadAt(weights, j));
      for (const int minus : {0, all_minus}) {
        const LevelNumbers& levels = minus == 0 ? kPlus : kMinus;
        const auto sum = hn::Add(hn::Add(hn::Mul(low, Set(levels[0])), hn::Mul(middle, Set(levels[1]))),
                                 hn::Mul(high, Set(levels[2])));
        const auto squares = hn::Add(hn::Add(square(low_weight, levels[0]), square(middle_weight, levels[1])),
                                     square(high_weight, levels[2]));
        best.offer(sum, squares, i, j, minus);
      }
    }
  }
}

// Holds prefix sums over the sorted numbers of a group of sixteen, but only of those from its first eight or, with
// `second`, from its last eight.
template <std::size_t kSize>
struct EightSums {
  HWY_ALIGN float products[(kSize + 1) * kMaxLanes];
  HWY_ALIGN float weights[(kSize + 1) * kMaxLanes];

  HWY_INLINE EightSums(const SortedGroup<kSize>& group, bool second) {
    StoreAt(Zero(), products, 0);
    StoreAt(Zero(), weights, 0);
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto is_second = hn::Ge(LoadAt(group.places, i), Set(kSize / 2));
      const auto here = second ? is_second : hn::Not(is_second);
      const auto weight = hn::IfThenElseZero(here, LoadAt(group.sorted_weights, i));
      StoreAt(hn::Add(LoadAt(products, i), hn::Mul(weight, LoadAt(group.sorted, i))), products, i + 1);
      StoreAt(hn::Add(LoadAt(weights, i), weight), weights, i + 1);
    }
  }

  // Returns the sum of weight * x * level for a split at i and j: sorted numbers before i have levels[0], those from j
  // on levels[2]. Neighbouring levels differ by 1.
  HWY_INLINE Numbers sum_products(std::size_t i, std::size_t j, const LevelNumbers& levels) const {
    return hn::Sub(hn::Mul(LoadAt(products, kSize), Set(levels[2])), hn::Add(LoadAt(products, j), LoadAt(products, i)));
  }
  // These functions add up weight * level^2 for a split at i and j: first the part that does not depend on j.
  HWY_INLINE Numbers start_squares(std::size_t i, const LevelNumbers& levels) const {
    const auto all = hn::Mul(hn::Mul(LoadAt(weights, kSize), Set(levels[2])), Set(levels[2]));
    return hn::Add(hn::Mul(Set(levels[0] * levels[0] - levels[1] * levels[1]), LoadAt(weights, i)), all);
  }
  HWY_INLINE Numbers end_squares(Numbers start, std::size_t j, const LevelNumbers& levels) const {
    return hn::Add(hn::Mul(Set(levels[1] * levels[1] - levels[2] * levels[2]), LoadAt(weights, j)), start);
  }
};

// Tries all splits of a group of sixteen numbers. Its first and last eight numbers each have their own sign of the
// eighth.
template <std::size_t kSize>
HWY_INLINE void TrySplitsOfTwoSigns(const SortedGroup<kSize>& group, Split& best) {
  const std::array<const LevelNumbers*, 2> levels = {&kPlus, &kMinus};
  const EightSums<kSize> eights[2] = {{group, false}, {group, true}};
  for (std::size_t i = 0; i <= kSize; ++i) {
    Numbers starts[2][2];  // for each eight and sign
    for (std::size_t e = 0; e < 2; ++e) {
      for (std::size_t sign = 0; sign < 2; ++sign) starts[e][sign] = eights[e].start_squares(i, *levels[sign]);
    }
    for (std::size_t j = i; j <= kSize; ++j) {
      Numbers products[2][2];
      Numbers squares[2][2];
      for (std::size_t e = 0; e < 2; ++e) {
        for (std::size_t sign = 0; sign < 2; ++sign) {
          products[e][sign] = eights[e].sum_products(i, j, *levels[sign]);
          squares[e][sign] = eights[e].end_squares(starts[e][sign], j, *levels[sign]);
        }
      }
      for (std::size_t first = 0; first < 2; ++first) {
        for (std::size_t second = 0; second < 2; ++second)
          best.offer(hn::Add(products[0][first], products[1][second]), hn::Add(squares[0][first], squares[1][second]),
                     i, j, static_cast<int>(first + 2 * second));
      }
    }
  }
}

// Holds a group's points and scale, a block in each lane. Groups of tiny numbers have the scale 0 and the point 0.
template <std::size_t kSize>
struct TernaryGroup {
  static constexpr std::size_t kPoints = kSize / 8;
  static constexpr int kAllMinus = (1 << kPoints) - 1;

  Numbers scale;
  Codes minus;  // bit i is set if an eighth is subtracted from the i-th eight numbers
  HWY_ALIGN std::uint32_t points[kPoints * kMaxLanes];

  HWY_INLINE hn::Vec<Words> get_point(std::size_t p) const {
    return hn::Load(Words(), points + p * hn::Lanes(Floats()));
  }
  HWY_INLINE Codes get_index(std::size_t p) const { return GetIndex(get_point(p)); }

  // Returns the number that the codes of element i stand for, before scaling.
  HWY_INLINE Numbers look_up_number(std::size_t i) const {
    return LookUpLevel(IsSet(minus, 1 << (i / 8)), GetLevel<3>(get_point(i / 8), i % 8));
  }

  HWY_INLINE TernaryGroup(const GridNeighbours& grid, const float* x, const SortedGroup<kSize>& group, float least,
                          const Split& split) {
    const auto found = hn::RebindMask(Floats(), hn::Not(hn::Lt(split.first, SetCode(0))));
    const auto something = Both(found, hn::Not(hn::Lt(group.peak, Set(least))));
    const auto negative = Both(something, hn::Lt(split.scale, Zero()));
    scale = hn::IfThenElseZero(something, hn::Abs(split.scale));
    minus = hn::IfThenElse(hn::RebindMask(Integers(), negative), hn::Xor(split.minus, SetCode(kAllMinus)), split.minus);
    minus = hn::IfThenElseZero(hn::RebindMask(Integers(), something), minus);
    HWY_ALIGN std::int32_t levels[kSize * kMaxLanes];
    find_levels(group, split, negative, levels);
    choose_points(grid, x, group, something, levels);
    refit(x, group, something);
  }

 private:
  // Computes the levels of the split, in the original order of the group.
  static HWY_INLINE void find_levels(const SortedGroup<kSize>& group, const Split& split, Choice negative,
                                     std::int32_t* levels) {
    HWY_ALIGN std::int32_t sorted[kMaxLanes];
    const std::size_t lanes = hn::Lanes(Floats());
    const auto flips = hn::RebindMask(Integers(), negative);
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto at = SetCode(static_cast<int>(i));
      auto level = hn::IfThenElse(hn::Lt(at, split.second), SetCode(1), SetCode(2));
      level = hn::IfThenZeroElse(hn::Lt(at, split.first), level);
      hn::Store(hn::IfThenElse(flips, hn::Sub(SetCode(2), level), level), Integers(), sorted);
      for (std::size_t lane = 0; lane < lanes; ++lane)
        levels[static_cast<std::size_t>(group.places[i * lanes + lane]) * lanes + lane] = sorted[lane];
    }
  }

  HWY_INLINE void choose_points(const GridNeighbours& grid, const float* x, const SortedGroup<kSize>& group,
                                Choice something, const std::int32_t* levels) {
    const std::size_t lanes = hn::Lanes(Floats());
    HWY_ALIGN std::int32_t signs[kMaxLanes];
    hn::Store(minus, Integers(), signs);
    for (std::size_t p = 0; p < kPoints; ++p) {
      const auto place = ComputePlace<8, 3>(
          [&](std::size_t i) HWY_ATTR { return hn::Load(Integers(), levels + (8 * p + i) * lanes); });
      const auto numbers = [&](std::size_t lane) -> const LevelNumbers& {
        return (signs[lane] >> p & 1) != 0 ? kMinus : kPlus;
      };
      const auto chosen =
          ChoosePoints<8, 3>(grid, place, x + 8 * p * lanes, group.weights + 8 * p * lanes, scale, something, numbers);
      hn::Store(chosen, Words(), points + p * lanes);
    }
  }

  // Computes the scale again if a point differs from the split.
  HWY_INLINE void refit(const float* x, const SortedGroup<kSize>& group, Choice something) {
    auto any_off = get_point(0);
    for (std::size_t p = 1; p < kPoints; ++p) any_off = hn::Or(any_off, get_point(p));
    const auto off = hn::Ne(hn::And(any_off, hn::Set(Words(), kOffGrid)), hn::Zero(Words()));
    auto products = Zero();
    auto squares = Zero();
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto code = look_up_number(i);
      const auto weighted = hn::Mul(LoadAt(group.weights, i), code);
      products = hn::Add(products, hn::Mul(weighted, LoadAt(x, i)));
      squares = hn::Add(squares, hn::Mul(weighted, code));
    }
    const auto fits = Both(hn::Gt(products, Zero()), hn::Gt(squares, Zero()));
    const auto changes = Both(something, Both(hn::RebindMask(Floats(), off), fits));
    scale = hn::IfThenElse(changes, hn::Div(products, squares), scale);
  }
};

HWY_INLINE Numbers ComputeTwiceMeanSquare(const float* x) {
  auto sum = Zero();
  for (std::size_t i = 0; i < kElements; ++i) sum = hn::Add(sum, hn::Mul(LoadAt(x, i), LoadAt(x, i)));
  return hn::Mul(sum, Set(2.0F / kElements));
}

// Returns the code of a scale that is about 2 * code + 1 units.
HWY_INLINE Codes FindOddCode(Numbers inverse_unit, Numbers scale) {
  return RoundAndClamp(hn::Mul(Set(0.5F), hn::Sub(hn::Mul(inverse_unit, scale), Set(1))), 0, 7);
}

void EncodeIq1_S(const BlockRows& rows, std::byte* out) {
  constexpr std::size_t kGroup = 32;
  constexpr std::size_t kGroups = kElements / kGroup;
  const GridNeighbours& grid = get_iq1_neighbours();
  const ScaledRows scaled(rows);
  EncodeLanes<kElements, 50, false>(scaled.get(), out, [&](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    using Group = TernaryGroup<kGroup>;
    const auto mean = ComputeTwiceMeanSquare(block.x);
    const std::size_t lanes = hn::Lanes(Floats());
    HWY_ALIGN float scales[kGroups * kMaxLanes];
    HWY_ALIGN std::int32_t high[kGroups * kMaxLanes];
    HWY_ALIGN float ones[kGroup * kMaxLanes];
    for (std::size_t i = 0; i < kGroup; ++i) StoreAt(Set(1), ones, i);
    auto largest = Zero();
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float* const x = block.x + kGroup * g * lanes;
      const float* const importance = block.importance == nullptr ? ones : block.importance + kGroup * g * lanes;
      const SortedGroup<kGroup> sorted(x, importance, mean);
      Split best(sorted.peak);
      TrySplitsOfOneSign(sorted, Group::kAllMinus, best);
      const Group group(grid, x, sorted, 1e-12F, best);
      StoreBytes(to, 2 + 4 * g, 4, [&](std::size_t p) HWY_ATTR { return group.get_index(p); });
      auto bits = hn::ShiftLeft<15>(hn::And(group.minus, SetCode(1)));
      for (std::size_t p = 0; p < Group::kPoints; ++p)
        bits = hn::Or(bits, hn::ShiftLeftSame(hn::ShiftRight<8>(group.get_index(p)), static_cast<int>(3 * p)));
      hn::Store(bits, Integers(), high + g * lanes);
      StoreAt(group.scale, scales, g);
      largest = hn::IfThenElse(hn::Gt(largest, group.scale), largest, group.scale);
    }
    const auto unit = hn::Div(largest, Set(15));
    to.store_halves(hn::Mul(unit, Set(1.125F)), 0);
    const auto inverse = hn::Div(Set(1), unit);
    const auto nothing = hn::RebindMask(Integers(), hn::Eq(largest, Zero()));
    for (std::size_t g = 0; g < kGroups; ++g) {
      const auto points = hn::Load(Integers(), high + g * lanes);
      const auto coded = hn::Or(points, hn::ShiftLeft<12>(FindOddCode(inverse, LoadAt(scales, g))));
      const auto bits = hn::IfThenElse(nothing, hn::And(points, SetCode(0xfff)), coded);
      to.store_bytes(bits, 34 + 2 * g);
      to.store_bytes(hn::ShiftRight<8>(bits), 35 + 2 * g);
    }
  });
}

void EncodeIq1_M(const BlockRows& rows, std::byte* out) {
  constexpr std::size_t kGroup = 16;
  constexpr std::size_t kGroups = kElements / kGroup;
  const GridNeighbours& grid = get_iq1_neighbours();
  const ScaledRows scaled(rows);
  EncodeLanes<kElements, 56, false>(scaled.get(), out, [&](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    using Group = TernaryGroup<kGroup>;
    const auto mean = ComputeTwiceMeanSquare(block.x);
    const std::size_t lanes = hn::Lanes(Floats());
    HWY_ALIGN float scales[kGroups * kMaxLanes];
    HWY_ALIGN float numbers[kElements * kMaxLanes];
    HWY_ALIGN float weights[kElements * kMaxLanes];
    HWY_ALIGN std::int32_t high[kGroups * kMaxLanes];  // bits of indices
    HWY_ALIGN std::int32_t signs[kGroups * kMaxLanes];
    auto largest = Zero();
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float* const x = block.x + kGroup * g * lanes;
      const SortedGroup<kGroup> sorted(x, block.importance == nullptr ? nullptr : block.importance + kGroup * g * lanes,
                                       mean);
      Split best(sorted.peak);
      TrySplitsOfTwoSigns(sorted, best);
      const Group group(grid, x, sorted, 1e-7F, best);
      for (std::size_t p = 0; p < 2; ++p) to.store_bytes(group.get_index(p), 2 * g + p);
      for (std::size_t i = 0; i < kGroup; ++i) {
        StoreAt(group.look_up_number(i), numbers, kGroup * g + i);
        StoreAt(LoadAt(sorted.weights, i), weights, kGroup * g + i);
      }
      const auto both =
          hn::Or(hn::ShiftRight<8>(group.get_index(0)), hn::ShiftLeft<4>(hn::ShiftRight<8>(group.get_index(1))));
      hn::Store(both, Integers(), high + g * lanes);
      hn::Store(hn::Or(hn::ShiftLeft<3>(hn::And(group.minus, SetCode(1))),
                       hn::ShiftLeft<6>(hn::And(group.minus, SetCode(2)))),
                Integers(), signs + g * lanes);
      StoreAt(group.scale, scales, g);
      largest = hn::IfThenElse(hn::Gt(largest, group.scale), largest, group.scale);
    }
    const auto nothing = hn::RebindMask(Integers(), hn::Eq(largest, Zero()));
    auto factor = hn::Div(largest, Set(15));
    const auto inverse = hn::Div(Set(1), factor);
    auto products = Zero();
    auto squares = Zero();
    Codes words[4];
    for (Codes& word : words) word = SetCode(0);
    for (std::size_t g = 0; g < kGroups; ++g) {
      const auto code = FindOddCode(inverse, LoadAt(scales, g));
      words[g / 4] = hn::Or(words[g / 4], hn::ShiftLeftSame(code, static_cast<int>(3 * (g % 4))));
      const auto units = ConvertToNumbers(hn::Add(hn::Add(code, code), SetCode(1)));
      for (std::size_t i = kGroup * g; i < kGroup * (g + 1); ++i) {
        const auto number = hn::Mul(LoadAt(numbers, i), units);
        const auto weighted = hn::Mul(LoadAt(weights, i), number);
        products = hn::Add(products, hn::Mul(weighted, LoadAt(block.x, i)));
        squares = hn::Add(squares, hn::Mul(weighted, number));
      }
      const auto sign = hn::IfThenZeroElse(nothing, hn::Load(Integers(), signs + g * lanes));
      to.store_bytes(hn::Or(hn::Load(Integers(), high + g * lanes), sign), 32 + g);
    }
    factor = hn::IfThenElse(hn::Gt(squares, Zero()), hn::Div(products, squares), factor);
    // Each word has four bits of the float16 factor above its scales.
    HWY_ALIGN float factors[kMaxLanes];
    HWY_ALIGN std::int32_t halves[kMaxLanes];
    hn::Store(hn::Mul(factor, Set(1.1125F)), Floats(), factors);
    for (std::size_t lane = 0; lane < lanes; ++lane) halves[lane] = round_to_half(factors[lane]);
    const auto half = hn::Load(Integers(), halves);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto nibble = hn::And(hn::ShiftRightSame(half, static_cast<int>(4 * i)), SetCode(15));
      const auto word = hn::IfThenZeroElse(nothing, hn::Or(words[i], hn::ShiftLeft<12>(nibble)));
      to.store_bytes(word, 48 + 2 * i);
      to.store_bytes(hn::ShiftRight<8>(word), 49 + 2 * i);
    }
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_ENCODER(encode_iq1_s, EncodeIq1_S)
POISE_EXPORT_ENCODER(encode_iq1_m, EncodeIq1_M)

}  // namespace poise
#endif
