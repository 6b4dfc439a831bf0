// Encodes Q2_K to Q6_K. Searches for the scale of each group (and the minimum, which Q3_K and Q6_K lack), and stores it
// as a small integer times a float16 number. Then computes the nearest codes for the stored scales.
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/encode_super_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/searches-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 256;

template <std::size_t kSize>
HWY_INLINE const float* GetGroup(const float* lanes, std::size_t group) {
  return lanes + kSize * group * hn::Lanes(Floats());
}

HWY_INLINE Numbers SumSquares(const float* x, std::size_t count) {
  auto sum = Zero();
  for (std::size_t i = 0; i < count; ++i) sum = hn::Add(sum, hn::Mul(LoadAt(x, i), LoadAt(x, i)));
  return sum;
}

// Computes the weights of squared errors from the importance matrix, and returns their sum.
template <std::size_t kSize>
HWY_INLINE Numbers WeighByImportance(const LaneBlocks& block, std::size_t group, Numbers mean, float* weights) {
  const float* const x = GetGroup<kSize>(block.x, group);
  const float* const importance = GetGroup<kSize>(block.importance, group);
  auto sum = Zero();
  for (std::size_t i = 0; i < kSize; ++i) {
    const auto weight = hn::Mul(LoadAt(importance, i), hn::Sqrt(hn::Add(mean, hn::Mul(LoadAt(x, i), LoadAt(x, i)))));
    StoreAt(weight, weights, i);
    sum = hn::Add(sum, weight);
  }
  return sum;
}

// Collects four bytes of each block, one by one.
class Word {
 public:
  HWY_INLINE Word() : word_(SetCode(0)) {}
  // Requires: the byte is below 256.
  HWY_INLINE void add(Codes byte, std::size_t i) {
    word_ = hn::Or(word_, hn::ShiftLeftSame(byte, static_cast<int>(8 * i)));
  }
  HWY_INLINE void store(const LaneOutput& out, std::size_t offset) const { out.store_words(word_, offset); }

 private:
  Codes word_;
};

// Finds codes from 0 to kLargest for groups with a scale and a minimum.
template <std::size_t kSize, int kLargest>
class RangeGroups {
 public:
  static constexpr std::size_t kGroups = kElements / kSize;

  explicit HWY_INLINE RangeGroups(const float* x) : x_(x) {}

  template <bool kSquares>
  HWY_INLINE void search(std::size_t group, const float* weights, float first, float step, int tries) {
    const auto found =
        FindScaleAndMin<kSize, kLargest, kSquares>(GetGroup<kSize>(x_, group), weights, first, step, tries);
    StoreAt(found.scale, scales_, group);
    StoreAt(hn::Neg(found.min), mins_, group);
    StoreAt(found.factor, factors_, group);
    StoreAt(found.start, starts_, group);
  }
  HWY_INLINE const float* get_scales() const { return scales_; }
  HWY_INLINE const float* get_mins() const { return mins_; }

  // Replaces the scale and the minimum of a group by rounded ones.
  HWY_INLINE void set_scale_and_min(std::size_t group, Numbers scale, Numbers min) {
    StoreAt(scale, scales_, group);
    StoreAt(min, mins_, group);
    lost_[group] = !hn::AllFalse(Floats(), hn::Eq(scale, Zero()));
  }
  // Returns the nearest code for the stored scale, or the code that the search found if that scale is 0.
  HWY_INLINE Codes compute_code(std::size_t i) const {
    const std::size_t group = i / kSize;
    const auto x = LoadAt(x_, i);
    const auto scale = LoadAt(scales_, group);
    const auto code = RoundAndClamp(hn::Div(hn::Add(x, LoadAt(mins_, group)), scale), 0, kLargest);
    if (HWY_LIKELY(!lost_[group])) return code;
    const ScaleAndMin found{scale, scale, LoadAt(factors_, group), LoadAt(starts_, group)};
    return hn::IfThenElse(hn::RebindMask(Integers(), hn::Eq(scale, Zero())), found.template compute_code<kLargest>(x),
                          code);
  }

 private:
  const float* x_;
  bool lost_[kGroups];
  HWY_ALIGN float scales_[kGroups * kMaxLanes];
  HWY_ALIGN float mins_[kGroups * kMaxLanes];
  HWY_ALIGN float factors_[kGroups * kMaxLanes];
  HWY_ALIGN float starts_[kGroups * kMaxLanes];
};

// Finds codes and a factor so that positive numbers are about code * factor: the largest number gets the code kTop.
// Negative numbers get the same codes as in ggml.
template <std::size_t kCount, int kTop>
HWY_INLINE Numbers FindCodesByLargest(const float* numbers, Codes* codes) {
  constexpr auto kLast = static_cast<float>(kTop);
  auto max = Zero();
  for (std::size_t i = 0; i < kCount; ++i)
    max = hn::IfThenElse(hn::Gt(LoadAt(numbers, i), max), LoadAt(numbers, i), max);
  const auto inverse = hn::IfThenElseZero(hn::Gt(max, Zero()), hn::Div(Set(kLast), max));
  for (std::size_t i = 0; i < kCount; ++i) {
    codes[i] = hn::Min(SetCode(kTop), hn::And(RoundToNearest(hn::Mul(inverse, LoadAt(numbers, i))), SetCode(255)));
  }
  return hn::Div(max, Set(kLast));
}

void EncodeQ2_K(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 84, false>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    constexpr std::size_t kSize = 16;
    using Groups = RangeGroups<kSize, 3>;
    HWY_ALIGN float weights[kSize * kMaxLanes];
    HWY_ALIGN float sums[Groups::kGroups * kMaxLanes];
    Codes scales[Groups::kGroups];
    Codes mins[Groups::kGroups];
    Groups groups(block.x);
    Numbers scale, min;
    if (block.importance != nullptr) {
      const auto mean = hn::Div(SumSquares(block.x, kElements), Set(kElements));
      for (std::size_t g = 0; g < Groups::kGroups; ++g) {
        StoreAt(WeighByImportance<kSize>(block, g, mean, weights), sums, g);
        groups.template search<true>(g, weights, -0.9F, 0.05F, 36);
      }
      scale = FindPositiveCodes<Groups::kGroups, 15>(groups.get_scales(), sums, scales);
      min = FindPositiveCodes<Groups::kGroups, 15>(groups.get_mins(), sums, mins);
    } else {
      for (std::size_t g = 0; g < Groups::kGroups; ++g) {
        for (std::size_t i = 0; i < kSize; ++i) StoreAt(hn::Abs(LoadAt(block.x, kSize * g + i)), weights, i);
        groups.template search<false>(g, weights, -0.5F, 0.1F, 15);
      }
      scale = FindCodesByLargest<Groups::kGroups, 15>(groups.get_scales(), scales);
      min = FindCodesByLargest<Groups::kGroups, 15>(groups.get_mins(), mins);
    }
    scale = to.store_halves(scale, 80);
    min = to.store_halves(min, 82);
    for (std::size_t g = 0; g < Groups::kGroups; ++g)
      groups.set_scale_and_min(g, hn::Mul(scale, ConvertToNumbers(scales[g])), hn::Mul(min, ConvertToNumbers(mins[g])));
    StoreBytes(to, 0, 16, [&](std::size_t i) HWY_ATTR { return hn::Or(scales[i], hn::ShiftLeft<4>(mins[i])); });
    for (std::size_t half = 0; half < 2; ++half) {
      StoreBytes(to, 16 + 32 * half, 32, [&](std::size_t i) HWY_ATTR {
        const std::size_t first = 128 * half + i;
        const auto low = hn::Or(groups.compute_code(first), hn::ShiftLeft<2>(groups.compute_code(first + 32)));
        return hn::Or(low, hn::Or(hn::ShiftLeft<4>(groups.compute_code(first + 64)),
                                  hn::ShiftLeft<6>(groups.compute_code(first + 96))));
      });
    }
  });
}

// Finds the scales and minimums of Q4_K and Q5_K, and stores the first 16 bytes of the blocks.
template <typename Groups>
HWY_INLINE void EncodeRangeGroups(const LaneBlocks& block, const LaneOutput& to, float first, int tries,
                                  Groups& groups) {
  constexpr std::size_t kSize = 32;
  constexpr std::size_t kGroups = Groups::kGroups;
  HWY_ALIGN float weights[kSize * kMaxLanes];
  HWY_ALIGN float sums[kGroups * kMaxLanes];
  Codes scales[kGroups];
  Codes mins[kGroups];
  Numbers scale, min;
  if (block.importance != nullptr) {
    const auto mean = hn::Div(hn::Mul(Set(2), SumSquares(block.x, kElements)), Set(kElements));
    for (std::size_t g = 0; g < kGroups; ++g) {
      StoreAt(WeighByImportance<kSize>(block, g, mean, weights), sums, g);
      groups.template search<true>(g, weights, -0.9F, 0.05F, 36);
    }
    scale = FindPositiveCodes<kGroups, 63>(groups.get_scales(), sums, scales);
    min = FindPositiveCodes<kGroups, 63>(groups.get_mins(), sums, mins);
  } else {
    for (std::size_t g = 0; g < kGroups; ++g) {
      const float* const x = GetGroup<kSize>(block.x, g);
      const auto average = hn::Sqrt(hn::Div(SumSquares(x, kSize), Set(kSize)));
      for (std::size_t i = 0; i < kSize; ++i) StoreAt(hn::Add(average, hn::Abs(LoadAt(x, i))), weights, i);
      groups.template search<true>(g, weights, first, 0.1F, tries);
    }
    scale = FindCodesByLargest<kGroups, 63>(groups.get_scales(), scales);
    min = FindCodesByLargest<kGroups, 63>(groups.get_mins(), mins);
  }
  scale = to.store_halves(scale, 0);
  min = to.store_halves(min, 2);
  for (std::size_t g = 0; g < kGroups; ++g)
    groups.set_scale_and_min(g, hn::Mul(scale, ConvertToNumbers(scales[g])), hn::Mul(min, ConvertToNumbers(mins[g])));
  const auto with_high_bits = [](Codes low, Codes high)
                                  HWY_ATTR { return hn::Or(low, hn::ShiftLeft<6>(hn::ShiftRight<4>(high))); };
  StoreBytes(to, 4, 4, [&](std::size_t i) HWY_ATTR { return with_high_bits(scales[i], scales[4 + i]); });
  StoreBytes(to, 8, 4, [&](std::size_t i) HWY_ATTR { return with_high_bits(mins[i], mins[4 + i]); });
  StoreBytes(to, 12, 4, [&](std::size_t i) HWY_ATTR {
    return hn::Or(hn::And(scales[4 + i], SetCode(15)), hn::ShiftLeft<4>(mins[4 + i]));
  });
}

void EncodeQ4_K(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 144, false>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    RangeGroups<32, 15> groups(block.x);
    EncodeRangeGroups(block, to, -1.0F, 20, groups);
    for (std::size_t pair = 0; pair < 4; ++pair) {
      StoreBytes(to, 16 + 32 * pair, 32, [&](std::size_t i) HWY_ATTR {
        return hn::Or(groups.compute_code(64 * pair + i), hn::ShiftLeft<4>(groups.compute_code(64 * pair + 32 + i)));
      });
    }
  });
}

void EncodeQ5_K(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 176, false>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    RangeGroups<32, 31> groups(block.x);
    EncodeRangeGroups(block, to, -0.5F, 15, groups);
    const auto nibble = SetCode(15);
    for (std::size_t first = 0; first < 32; first += 4) {
      Word fifth;
      Word low[4];
      for (std::size_t k = 0; k < 4; ++k) {
        auto bits = SetCode(0);
        for (std::size_t pair = 0; pair < 4; ++pair) {
          const auto even = groups.compute_code(64 * pair + first + k);
          const auto odd = groups.compute_code(64 * pair + 32 + first + k);
          low[pair].add(hn::Or(hn::And(even, nibble), hn::ShiftLeft<4>(hn::And(odd, nibble))), k);
          bits = hn::Or(bits, hn::ShiftLeftSame(hn::ShiftRight<4>(even), static_cast<int>(2 * pair)));
          bits = hn::Or(bits, hn::ShiftLeftSame(hn::ShiftRight<4>(odd), static_cast<int>(2 * pair + 1)));
        }
        fifth.add(bits, k);
      }
      fifth.store(to, 16 + first);
      for (std::size_t pair = 0; pair < 4; ++pair) low[pair].store(to, 48 + 32 * pair + first);
    }
  });
}

// Finds codes from 0 to 2 * kLargest - 1 for groups with only a scale.
template <int kLargest>
class SymmetricGroups {
 public:
  static constexpr std::size_t kSize = 16;
  static constexpr std::size_t kGroups = kElements / kSize;

  explicit HWY_INLINE SymmetricGroups(const float* x) : x_(x) {}

  HWY_INLINE void search(std::size_t group, const float* weights) {
    const float* const x = GetGroup<kSize>(x_, group);
    const auto found = FindSymmetricScale<kSize, kLargest>(x, weights);
    StoreAt(found.scale, scales_, group);
    for (std::size_t i = 0; i < kSize; ++i)
      StoreAt(ConvertToNumbers(found.template compute_code<kLargest>(LoadAt(x, i))), codes_, kSize * group + i);
  }
  template <std::size_t kTogether>
  HWY_INLINE void search_together(std::size_t first_group) {
    const std::size_t lanes = hn::Lanes(Floats());
    float* const codes = codes_ + kSize * first_group * lanes;
    FindScalesAndCodes<kSize, kLargest, kTogether>(GetGroup<kSize>(x_, first_group), codes,
                                                   scales_ + first_group * lanes);
  }
  HWY_INLINE const float* get_scales() const { return scales_; }

  HWY_INLINE void set_scale(std::size_t group, Numbers scale) { StoreAt(scale, scales_, group); }
  // Returns the nearest code for the stored scale, or the code that the search found if that scale is 0.
  HWY_INLINE Codes compute_code(std::size_t i) const {
    const auto scale = LoadAt(scales_, i / kSize);
    const auto code = hn::Add(RoundAndClamp(hn::Div(LoadAt(x_, i), scale), -kLargest, kLargest - 1), SetCode(kLargest));
    return hn::IfThenElse(hn::RebindMask(Integers(), hn::Eq(scale, Zero())),
                          hn::ConvertTo(Integers(), LoadAt(codes_, i)), code);
  }

 private:
  const float* x_;
  HWY_ALIGN float scales_[kGroups * kMaxLanes];
  HWY_ALIGN float codes_[kElements * kMaxLanes];
};

void EncodeQ3_K(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 110, false>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    using Groups = SymmetricGroups<4>;
    Groups groups(block.x);
    Codes scales[Groups::kGroups];
    Numbers scale;
    if (block.importance != nullptr) {
      HWY_ALIGN float weights[Groups::kSize * kMaxLanes];
      HWY_ALIGN float sums[Groups::kGroups * kMaxLanes];
      const auto mean = hn::Div(hn::Mul(Set(2), SumSquares(block.x, kElements)), Set(kElements));
      for (std::size_t g = 0; g < Groups::kGroups; ++g) {
        StoreAt(WeighByImportance<Groups::kSize>(block, g, mean, weights), sums, g);
        groups.search(g, weights);
      }
      const auto found = FindSymmetricScale<Groups::kGroups, 32>(groups.get_scales(), sums);
      scale = found.scale;
      for (std::size_t g = 0; g < Groups::kGroups; ++g)
        scales[g] = found.compute_code<32>(LoadAt(groups.get_scales(), g));
    } else {
      constexpr std::size_t kTogether = 4;
      for (std::size_t g = 0; g < Groups::kGroups; g += kTogether) groups.search_together<kTogether>(g);
      const Peak peak(Groups::kGroups, [&](std::size_t i) HWY_ATTR { return LoadAt(groups.get_scales(), i); });
      const auto none = hn::Eq(peak.value, Zero());
      const auto inverse = hn::Div(Set(-32), peak.value);
      scale = hn::IfThenZeroElse(none, hn::Div(Set(1), inverse));
      for (std::size_t g = 0; g < Groups::kGroups; ++g) {
        const auto code =
            hn::Add(RoundAndClamp(hn::Mul(inverse, LoadAt(groups.get_scales(), g)), -32, 31), SetCode(32));
        scales[g] = hn::IfThenZeroElse(hn::RebindMask(Integers(), none), code);
      }
    }
    scale = to.store_halves(scale, 108);
    for (std::size_t g = 0; g < Groups::kGroups; ++g)
      groups.set_scale(g, hn::Mul(scale, ConvertToNumbers(hn::Sub(scales[g], SetCode(32)))));
    StoreBytes(to, 96, 8, [&](std::size_t i) HWY_ATTR {
      return hn::Or(hn::And(scales[i], SetCode(15)), hn::ShiftLeft<4>(scales[8 + i]));
    });
    StoreBytes(to, 104, 4, [&](std::size_t i) HWY_ATTR {
      auto bits = SetCode(0);
      for (std::size_t j = 0; j < 4; ++j)
        bits = hn::Or(bits, hn::ShiftLeftSame(hn::ShiftRight<4>(scales[4 * j + i]), static_cast<int>(2 * j)));
      return bits;
    });
    for (std::size_t first = 0; first < 32; first += 4) {
      Word third;
      Word low[2];
      for (std::size_t k = 0; k < 4; ++k) {
        auto bits = SetCode(0);
        for (std::size_t half = 0; half < 2; ++half) {
          auto pairs = SetCode(0);
          for (std::size_t j = 0; j < 4; ++j) {
            const auto code = groups.compute_code(32 * (4 * half + j) + first + k);
            pairs = hn::Or(pairs, hn::ShiftLeftSame(hn::And(code, SetCode(3)), static_cast<int>(2 * j)));
            bits = hn::Or(bits, hn::ShiftLeftSame(hn::ShiftRight<2>(code), static_cast<int>(4 * half + j)));
          }
          low[half].add(pairs, k);
        }
        third.add(bits, k);
      }
      third.store(to, first);
      for (std::size_t half = 0; half < 2; ++half) low[half].store(to, 32 + 32 * half + first);
    }
  });
}

void EncodeQ6_K(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 210, false>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    using Groups = SymmetricGroups<32>;
    Groups groups(block.x);
    HWY_ALIGN float squares[Groups::kSize * kMaxLanes];
    for (std::size_t g = 0; g < Groups::kGroups; ++g) {
      const float* const x = GetGroup<Groups::kSize>(block.x, g);
      for (std::size_t i = 0; i < Groups::kSize; ++i) StoreAt(hn::Mul(LoadAt(x, i), LoadAt(x, i)), squares, i);
      groups.search(g, block.importance != nullptr ? GetGroup<Groups::kSize>(block.importance, g) : squares);
    }
    const Peak peak(Groups::kGroups, [&](std::size_t i) HWY_ATTR { return LoadAt(groups.get_scales(), i); });
    const auto nothing = hn::Lt(peak.magnitude, Set(kNearlyZero));
    const auto nonzero = hn::Not(hn::RebindMask(Integers(), nothing));
    const auto inverse = hn::Div(Set(-128), peak.value);
    const auto scale = to.store_halves(hn::IfThenZeroElse(nothing, hn::Div(Set(1), inverse)), 208);
    Codes scales[Groups::kGroups];
    for (std::size_t g = 0; g < Groups::kGroups; ++g) {
      scales[g] = hn::IfThenElseZero(
          nonzero, hn::Min(SetCode(127), RoundToNearest(hn::Mul(inverse, LoadAt(groups.get_scales(), g)))));
      groups.set_scale(g, hn::Mul(scale, ConvertToNumbers(scales[g])));
    }
    StoreBytes(to, 192, 16, [&](std::size_t i) HWY_ATTR { return scales[i]; });
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t first = 0; first < 32; first += 4) {
        Word low[2];
        Word high;
        for (std::size_t k = 0; k < 4; ++k) {
          auto nibbles = SetCode(0);
          auto bits = SetCode(0);
          for (std::size_t j = 0; j < 2; ++j) {
            const auto lower = hn::IfThenElseZero(nonzero, groups.compute_code(128 * half + 32 * j + first + k));
            const auto upper = hn::IfThenElseZero(nonzero, groups.compute_code(128 * half + 32 * j + 64 + first + k));
            nibbles = hn::Or(hn::And(lower, SetCode(15)), hn::ShiftLeft<4>(hn::And(upper, SetCode(15))));
            low[j].add(nibbles, k);
            bits = hn::Or(bits, hn::ShiftLeftSame(hn::ShiftRight<4>(lower), static_cast<int>(2 * j)));
            bits = hn::Or(bits, hn::ShiftLeftSame(hn::ShiftRight<4>(upper), static_cast<int>(2 * j + 4)));
          }
          high.add(bits, k);
        }
        for (std::size_t j = 0; j < 2; ++j) low[j].store(to, 64 * half + 32 * j + first);
        high.store(to, 128 + 32 * half + first);
      }
    }
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_ENCODER(encode_q2_k, EncodeQ2_K)
POISE_EXPORT_ENCODER(encode_q3_k, EncodeQ3_K)
POISE_EXPORT_ENCODER(encode_q4_k, EncodeQ4_K)
POISE_EXPORT_ENCODER(encode_q5_k, EncodeQ5_K)
POISE_EXPORT_ENCODER(encode_q6_k, EncodeQ6_K)

}  // namespace poise
#endif
