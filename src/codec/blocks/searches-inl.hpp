// Searches for scales with the least weighted error, as ggml does. Each lane of a vector works on one group of numbers.
// Highway compiles this for each kind of processor.
//
// Adds numbers in ggml's order, and rounds each term as ggml does: w * x * code is (w * x) * code.
#if defined(POISE_BLOCK_SEARCHES) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_BLOCK_SEARCHES
#undef POISE_BLOCK_SEARCHES
#else
#define POISE_BLOCK_SEARCHES
#endif

#include <limits>

#include "codec/blocks/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr float kNearlyZero = 1e-15F;  // groups of smaller numbers have the scale 0

HWY_INLINE Choice Both(Choice a, Choice b) { return hn::And(a, b); }

// Approximates x by scale * (code - kLargest), with codes up to 2 * kLargest - 1.
struct SymmetricScale {
  Numbers scale;
  Numbers factor;  // code = RoundBetween(factor * x, -kLargest, kLargest - 1) + zero
  Numbers zero;    // kLargest, or 0 if all codes are 0

  template <int kLargest>
  HWY_INLINE Codes compute_code(Numbers x) const {
    return hn::ConvertTo(Integers(), hn::Add(RoundBetween(hn::Mul(factor, x), -kLargest, kLargest - 1), zero));
  }
};

// Tries nineteen scales, and returns the best one by least squares. With the first scale, the number of largest
// magnitude gets the code 0; the other scales are near it.
template <std::size_t kSize, int kLargest>
HWY_INLINE SymmetricScale FindSymmetricScale(const float* x, const float* weights) {
  const Peak peak(kSize, [x](std::size_t i) HWY_ATTR { return LoadAt(x, i); });
  constexpr auto kTop = static_cast<float>(kLargest);
  const auto nothing = hn::Lt(peak.magnitude, Set(kNearlyZero));
  auto sum_lx = Zero();
  auto sum_l2 = Zero();
  const auto sum = [&](Numbers factor) HWY_ATTR {
    sum_lx = sum_l2 = Zero();
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto value = LoadAt(x, i);
      const auto weight = LoadAt(weights, i);
      const auto code = RoundBetween(hn::Mul(factor, value), -kLargest, kLargest - 1);
      sum_lx = hn::Add(sum_lx, hn::Mul(hn::Mul(weight, value), code));
      sum_l2 = hn::Add(sum_l2, hn::Mul(hn::Mul(weight, code), code));
    }
  };
  auto factor = hn::Div(Set(-kTop), peak.value);
  sum(factor);
  auto scale = hn::IfThenZeroElse(hn::Eq(sum_l2, Zero()), hn::Div(sum_lx, sum_l2));
  auto best = hn::Mul(scale, sum_lx);
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    const auto other = hn::Div(Set(-(kTop + 0.1F * static_cast<float>(step))), peak.value);
    sum(other);
    const auto better = Both(hn::Gt(sum_l2, Zero()), hn::Gt(hn::Mul(sum_lx, sum_lx), hn::Mul(best, sum_l2)));
    scale = hn::IfThenElse(better, hn::Div(sum_lx, sum_l2), scale);
    best = hn::IfThenElse(better, hn::Mul(scale, sum_lx), best);
    factor = hn::IfThenElse(better, other, factor);
  }
  return {hn::IfThenZeroElse(nothing, scale), hn::IfThenZeroElse(nothing, factor),
          hn::IfThenZeroElse(nothing, Set(kTop))};
}

// Finds the scales and codes of contiguous groups of kSize numbers, as in SymmetricScale, by changing codes one at a
// time. Weights errors by the squares of the numbers. Handles kTogether groups, so that their sequential steps overlap.
// Writes the codes as float32 numbers.
template <std::size_t kSize, int kLargest, std::size_t kTogether>
HWY_INLINE void FindScalesAndCodes(const float* x, float* codes, float* scales) {
  struct State {
    Numbers sum_lx, sum_l2, nothing;
  };
  State states[kTogether];
  for (std::size_t g = 0; g < kTogether; ++g) {
    const Peak peak(kSize, [&](std::size_t i) HWY_ATTR { return LoadAt(x, kSize * g + i); });
    const auto factor = hn::Div(Set(-static_cast<float>(kLargest)), peak.value);
    auto sum_lx = Zero();
    auto sum_l2 = Zero();
    for (std::size_t i = kSize * g; i < kSize * (g + 1); ++i) {
      const auto value = LoadAt(x, i);
      const auto weight = hn::Mul(value, value);
      const auto code = RoundBetween(hn::Mul(factor, value), -kLargest, kLargest - 1);
      StoreAt(code, codes, i);
      sum_lx = hn::Add(sum_lx, hn::Mul(hn::Mul(weight, value), code));
      sum_l2 = hn::Add(sum_l2, hn::Mul(hn::Mul(weight, code), code));
    }
    states[g].sum_lx = sum_lx;
    states[g].sum_l2 = sum_l2;
    states[g].nothing = hn::VecFromMask(Floats(), hn::Lt(peak.magnitude, Set(kNearlyZero)));
  }
  for (int round = 0; round < 5; ++round) {
    auto changed = hn::Lt(Zero(), Zero());
    for (std::size_t j = 0; j < kSize; ++j) {
      for (std::size_t g = 0; g < kTogether; ++g) {
        State& state = states[g];
        const std::size_t i = kSize * g + j;
        const auto value = LoadAt(x, i);
        const auto weight = hn::Mul(value, value);
        const auto product = hn::Mul(weight, value);
        const auto code = LoadAt(codes, i);
        const auto rest_lx = hn::Sub(state.sum_lx, hn::Mul(product, code));
        const auto rest_l2 = hn::Sub(state.sum_l2, hn::Mul(hn::Mul(weight, code), code));
        const auto other =
            ConvertToNumbers(RoundAndClamp(hn::Div(hn::Mul(value, rest_l2), rest_lx), -kLargest, kLargest - 1));
        const auto new_lx = hn::Add(rest_lx, hn::Mul(product, other));
        const auto new_l2 = hn::Add(rest_l2, hn::Mul(hn::Mul(weight, other), other));
        const auto differs = Both(hn::Gt(rest_lx, Zero()), hn::Ne(other, code));
        const auto gains = hn::Gt(hn::Mul(hn::Mul(new_lx, new_lx), state.sum_l2),
                                  hn::Mul(hn::Mul(state.sum_lx, state.sum_lx), new_l2));
        const auto better = Both(differs, Both(hn::Gt(new_l2, Zero()), gains));
        StoreAt(hn::IfThenElse(better, other, code), codes, i);
        state.sum_lx = hn::IfThenElse(better, new_lx, state.sum_lx);
        state.sum_l2 = hn::IfThenElse(better, new_l2, state.sum_l2);
        changed = hn::Or(changed, better);
      }
    }
    if (hn::AllFalse(Floats(), changed)) break;
  }
  for (std::size_t g = 0; g < kTogether; ++g) {
    const auto nothing = hn::MaskFromVec(states[g].nothing);
    for (std::size_t i = kSize * g; i < kSize * (g + 1); ++i) {
      StoreAt(hn::IfThenZeroElse(nothing, hn::Add(LoadAt(codes, i), Set(static_cast<float>(kLargest)))), codes, i);
    }
    const auto scale = hn::Div(states[g].sum_lx, states[g].sum_l2);
    StoreAt(hn::IfThenZeroElse(hn::Or(nothing, hn::Not(hn::Gt(states[g].sum_l2, Zero()))), scale), scales, g);
  }
}

// Approximates x by scale * code + min, with codes up to kLargest.
struct ScaleAndMin {
  Numbers scale;
  Numbers min;     // not above 0
  Numbers factor;  // code = RoundBetween(factor * (x - start), 0, kLargest)
  Numbers start;

  template <int kLargest>
  HWY_INLINE Codes compute_code(Numbers x) const {
    return hn::ConvertTo(Integers(), RoundBetween(hn::Mul(factor, hn::Sub(x, start)), 0, kLargest));
  }
};

// Tries scales, and returns the scale and minimum with the least weighted error: squared if kSquares, else absolute.
template <std::size_t kSize, int kLargest, bool kSquares>
HWY_INLINE ScaleAndMin FindScaleAndMin(const float* x, const float* weights, float first_try, float step, int tries) {
  constexpr auto kTop = static_cast<float>(kLargest);
  auto min = LoadAt(x, 0);
  auto max = min;
  auto sum_w = LoadAt(weights, 0);
  auto sum_x = hn::Mul(sum_w, min);
  for (std::size_t i = 1; i < kSize; ++i) {
    const auto value = LoadAt(x, i);
    const auto weight = LoadAt(weights, i);
    min = hn::IfThenElse(hn::Lt(value, min), value, min);
    max = hn::IfThenElse(hn::Gt(value, max), value, max);
    sum_w = hn::Add(sum_w, weight);
    sum_x = hn::Add(sum_x, hn::Mul(weight, value));
  }
  min = hn::IfThenZeroElse(hn::Gt(min, Zero()), min);
  const auto nothing = hn::Eq(max, min);
  const auto only_min = min;

  HWY_ALIGN float codes[kSize * kMaxLanes];
  const auto compute_error = [&](Numbers scale, Numbers offset) HWY_ATTR {
    auto sum = Zero();
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto difference = hn::Sub(hn::Add(hn::Mul(scale, LoadAt(codes, i)), offset), LoadAt(x, i));
      const auto loss = kSquares ? hn::Mul(difference, difference) : hn::Abs(difference);
      sum = hn::Add(sum, hn::Mul(LoadAt(weights, i), loss));
    }
    return sum;
  };

  // If the range is so small that the factor is infinite, all codes are 0, as in ggml.
  const auto clear_infinity = [](Numbers number) HWY_ATTR {
    return hn::IfThenElseZero(hn::Lt(hn::Abs(number), Set(std::numeric_limits<float>::infinity())), number);
  };
  auto factor = hn::Div(Set(kTop), hn::Sub(max, min));
  auto scale = hn::Div(Set(1), factor);
  factor = clear_infinity(factor);
  auto start = min;
  for (std::size_t i = 0; i < kSize; ++i)
    StoreAt(RoundBetween(hn::Mul(factor, hn::Sub(LoadAt(x, i), start)), 0, kLargest), codes, i);
  auto best = compute_error(scale, min);
  for (int i = 0; i <= tries; ++i) {
    const auto other = clear_infinity(hn::Div(Set(first_try + step * static_cast<float>(i) + kTop), hn::Sub(max, min)));
    auto sum_l = Zero();
    auto sum_l2 = Zero();
    auto sum_xl = Zero();
    for (std::size_t j = 0; j < kSize; ++j) {
      const auto value = LoadAt(x, j);
      const auto code = RoundBetween(hn::Mul(other, hn::Sub(value, min)), 0, kLargest);
      StoreAt(code, codes, j);
      const auto weighted = hn::Mul(LoadAt(weights, j), code);
      sum_l = hn::Add(sum_l, weighted);
      sum_l2 = hn::Add(sum_l2, hn::Mul(weighted, code));
      sum_xl = hn::Add(sum_xl, hn::Mul(weighted, value));
    }
    const auto determinant = hn::Sub(hn::Mul(sum_w, sum_l2), hn::Mul(sum_l, sum_l));
    auto new_scale = hn::Div(hn::Sub(hn::Mul(sum_w, sum_xl), hn::Mul(sum_x, sum_l)), determinant);
    auto new_min = hn::Div(hn::Sub(hn::Mul(sum_l2, sum_x), hn::Mul(sum_l, sum_xl)), determinant);
    const auto positive = hn::Gt(new_min, Zero());
    new_scale = hn::IfThenElse(positive, hn::Div(sum_xl, sum_l2), new_scale);
    new_min = hn::IfThenZeroElse(positive, new_min);
    const auto loss = compute_error(new_scale, new_min);
    const auto better = Both(hn::Gt(determinant, Zero()), hn::Lt(loss, best));
    best = hn::IfThenElse(better, loss, best);
    scale = hn::IfThenElse(better, new_scale, scale);
    factor = hn::IfThenElse(better, other, factor);
    start = hn::IfThenElse(better, min, start);
    min = hn::IfThenElse(better, new_min, min);
  }
  return {hn::IfThenZeroElse(nothing, scale), hn::IfThenElse(nothing, only_min, min),
          hn::IfThenZeroElse(nothing, factor), hn::IfThenZeroElse(nothing, start)};
}

// Finds codes from 0 to kLargest so that x is about scale * code. Writes them to `codes`, and returns the scale.
// Keeps only the low byte of a code, as ggml does.
template <std::size_t kSize, int kLargest>
HWY_INLINE Numbers FindPositiveCodes(const float* x, const float* weights, Codes* codes) {
  constexpr auto kTop = static_cast<float>(kLargest);
  const auto byte = SetCode(255);
  const auto largest = SetCode(kLargest);
  auto max = Zero();
  for (std::size_t i = 0; i < kSize; ++i) max = hn::IfThenElse(hn::Gt(max, LoadAt(x, i)), max, LoadAt(x, i));
  const auto nothing = hn::Lt(max, Set(kNearlyZero));
  auto factor = hn::Div(Set(kTop), max);
  const auto compute_loss = [&](Numbers inverse, Numbers scale, bool first) HWY_ATTR {
    auto sum = Zero();
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto rounded = RoundToNearest(hn::Mul(inverse, LoadAt(x, i)));
      const auto code = first ? hn::And(rounded, byte) : hn::Min(largest, rounded);
      const auto difference = hn::Sub(LoadAt(x, i), hn::Mul(scale, ConvertToNumbers(code)));
      sum = hn::Add(sum, hn::Mul(hn::Mul(LoadAt(weights, i), difference), difference));
    }
    return sum;
  };
  auto best = compute_loss(factor, hn::Div(Set(1), factor), true);
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const auto other = hn::Div(Set(0.1F * static_cast<float>(step) + kTop), max);
    const auto sum = compute_loss(other, hn::Div(Set(1), other), false);
    const auto better = hn::Lt(sum, best);
    best = hn::IfThenElse(better, sum, best);
    factor = hn::IfThenElse(better, other, factor);
  }
  auto sum_lx = Zero();
  auto sum_l2 = Zero();
  for (std::size_t i = 0; i < kSize; ++i) {
    const auto rounded = hn::Min(largest, RoundToNearest(hn::Mul(factor, LoadAt(x, i))));
    codes[i] = hn::And(rounded, byte);
    const auto code = ConvertToNumbers(rounded);
    const auto weight = LoadAt(weights, i);
    sum_lx = hn::Add(sum_lx, hn::Mul(hn::Mul(weight, LoadAt(x, i)), code));
    sum_l2 = hn::Add(sum_l2, hn::Mul(hn::Mul(weight, code), code));
  }
  for (int round = 0; round < 5; ++round) {
    auto changed = hn::Lt(Zero(), Zero());
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto value = LoadAt(x, i);
      const auto weight = LoadAt(weights, i);
      const auto product = hn::Mul(weight, value);
      const auto code = ConvertToNumbers(codes[i]);
      const auto rest_lx = hn::Sub(sum_lx, hn::Mul(product, code));
      const auto rest_l2 = hn::Sub(sum_l2, hn::Mul(hn::Mul(weight, code), code));
      const auto rounded = hn::Min(largest, RoundToNearest(hn::Div(hn::Mul(value, rest_l2), rest_lx)));
      const auto other = ConvertToNumbers(rounded);
      const auto new_lx = hn::Add(rest_lx, hn::Mul(product, other));
      const auto new_l2 = hn::Add(rest_l2, hn::Mul(hn::Mul(weight, other), other));
      const auto possible = Both(Both(hn::Gt(rest_lx, Zero()), hn::Gt(rest_l2, Zero())), hn::Ne(other, code));
      const auto gains = hn::Gt(hn::Mul(hn::Mul(new_lx, new_lx), sum_l2), hn::Mul(hn::Mul(sum_lx, sum_lx), new_l2));
      const auto better = Both(possible, gains);
      codes[i] = hn::IfThenElse(hn::RebindMask(Integers(), better), hn::And(rounded, byte), codes[i]);
      sum_lx = hn::IfThenElse(better, new_lx, sum_lx);
      sum_l2 = hn::IfThenElse(better, new_l2, sum_l2);
      changed = hn::Or(changed, better);
    }
    if (hn::AllFalse(Floats(), changed)) break;
  }
  for (std::size_t i = 0; i < kSize; ++i) codes[i] = hn::IfThenZeroElse(hn::RebindMask(Integers(), nothing), codes[i]);
  return hn::IfThenZeroElse(hn::Or(nothing, hn::Not(hn::Gt(sum_l2, Zero()))), hn::Div(sum_lx, sum_l2));
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
