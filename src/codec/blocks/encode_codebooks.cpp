// Encodes IQ4_NL, IQ4_XS, MXFP4, NVFP4.
#include <cmath>

#include "codec/blocks/codebooks.hpp"
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/encode_codebooks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/searches-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kGroup = 32;  // numbers that share a scale

HWY_INLINE float ComputeIq4Middle(std::size_t i) {
  return 0.5F * static_cast<float>(kIq4Numbers[i] + kIq4Numbers[i + 1]);
}

// Returns the nearest number of the table; if two are equally near, the greater one.
HWY_INLINE Numbers FindNearestIq4(Numbers x) {
  auto nearest = Set(kIq4Numbers[0]);
  for (std::size_t i = 0; i < 15; ++i)
    nearest = hn::IfThenElse(hn::Ge(x, Set(ComputeIq4Middle(i))), Set(kIq4Numbers[i + 1]), nearest);
  return nearest;
}
// Returns the code of the number that FindNearestIq4() returns.
HWY_INLINE Codes FindIq4Code(Numbers x) {
  auto code = Zero();
  for (std::size_t i = 0; i < 15; ++i)
    code = hn::Add(code, hn::IfThenElseZero(hn::Ge(x, Set(ComputeIq4Middle(i))), Set(1)));
  return hn::ConvertTo(Integers(), code);
}

// Tries sixteen scales, and returns the best one by least squares. With the first scale, the number of largest
// magnitude gets the last code; with the others, it gets the first.
HWY_INLINE Numbers FindIq4Scale(const float* x, const float* weights) {
  constexpr int kTries = 7;
  const auto lowest = static_cast<float>(kIq4Numbers[0]);
  const Peak peak(kGroup, [x](std::size_t i) HWY_ATTR { return LoadAt(x, i); });
  const auto nothing = hn::Lt(peak.magnitude, Set(kNearlyZero));
  auto sum_qx = Zero();
  auto sum_q2 = Zero();
  const auto sum = [&](Numbers inverse) HWY_ATTR {
    sum_qx = sum_q2 = Zero();
    for (std::size_t i = 0; i < kGroup; ++i) {
      const auto value = LoadAt(x, i);
      const auto nearest = FindNearestIq4(hn::Mul(inverse, value));
      const auto weighted = hn::Mul(LoadAt(weights, i), nearest);
      sum_qx = hn::Add(sum_qx, hn::Mul(weighted, value));
      sum_q2 = hn::Add(sum_q2, hn::Mul(weighted, nearest));
    }
  };
  sum(hn::Div(Set(1), hn::Div(hn::Neg(peak.value), Set(lowest))));
  auto scale = hn::IfThenElseZero(hn::Gt(sum_q2, Zero()), hn::Div(sum_qx, sum_q2));
  auto best = hn::Mul(scale, sum_qx);
  for (int i = -kTries; i <= kTries; ++i) {
    sum(hn::Div(Set(static_cast<float>(i) + lowest), peak.value));
    const auto better = Both(hn::Gt(sum_q2, Zero()), hn::Gt(hn::Mul(sum_qx, sum_qx), hn::Mul(best, sum_q2)));
    scale = hn::IfThenElse(better, hn::Div(sum_qx, sum_q2), scale);
    best = hn::IfThenElse(better, hn::Mul(scale, sum_qx), best);
  }
  return hn::IfThenZeroElse(nothing, scale);
}

// Computes the weights of squared errors in a group: x^2, or with an importance, importance * sqrt(mean + x^2).
template <std::size_t kElements>
HWY_INLINE void WeighIq4(const LaneBlocks& block, std::size_t group, Numbers mean, float* weights) {
  for (std::size_t i = 0; i < kGroup; ++i) {
    const auto x = LoadAt(block.x, kGroup * group + i);
    const auto square = hn::Mul(x, x);
    StoreAt(block.importance == nullptr
                ? square
                : hn::Mul(LoadAt(block.importance, kGroup * group + i), hn::Sqrt(hn::Add(mean, square))),
            weights, i);
  }
}

// Returns twice the mean square of kElements numbers in each lane.
template <std::size_t kElements>
HWY_INLINE Numbers ComputeTwiceMeanSquare(const float* x) {
  auto sum = Zero();
  for (std::size_t i = 0; i < kElements; ++i) sum = hn::Add(sum, hn::Mul(LoadAt(x, i), LoadAt(x, i)));
  return hn::Mul(sum, Set(2.0F / kElements));
}

void EncodeIq4_Nl(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kGroup, 18, false>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    HWY_ALIGN float weights[kGroup * kMaxLanes];
    WeighIq4<kGroup>(block, 0, ComputeTwiceMeanSquare<kGroup>(block.x), weights);
    const auto scale = FindIq4Scale(block.x, weights);
    to.store_halves(scale, 0);
    const auto inverse = InvertOrZero(scale);
    const auto code = [&](std::size_t i) HWY_ATTR { return FindIq4Code(hn::Mul(inverse, LoadAt(block.x, i))); };
    StoreBytes(to, 2, 16, [&](std::size_t i) HWY_ATTR { return hn::Or(code(i), hn::ShiftLeft<4>(code(i + 16))); });
  });
}

void EncodeIq4_Xs(const BlockRows& rows, std::byte* out) {
  constexpr std::size_t kElements = 256;
  constexpr std::size_t kGroups = kElements / kGroup;
  EncodeLanes<kElements, 136, false>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    HWY_ALIGN float weights[kGroup * kMaxLanes];
    HWY_ALIGN float scales[kGroups * kMaxLanes];
    const auto mean = ComputeTwiceMeanSquare<kElements>(block.x);
    for (std::size_t group = 0; group < kGroups; ++group) {
      WeighIq4<kElements>(block, group, mean, weights);
      StoreAt(FindIq4Scale(block.x + kGroup * group * hn::Lanes(Floats()), weights), scales, group);
    }
    const Peak peak(kGroups, [&](std::size_t i) HWY_ATTR { return LoadAt(scales, i); });
    const auto factor = hn::Div(hn::Neg(peak.value), Set(32));
    to.store_halves(factor, 0);
    const auto inverse = InvertOrZero(factor);
    auto low = SetCode(0);
    auto high = SetCode(0);
    for (std::size_t group = 0; group < kGroups; ++group) {
      const auto scale_code = RoundAndClamp(hn::Mul(inverse, LoadAt(scales, group)), -32, 31);
      const auto inverse_scale = InvertOrZero(hn::Mul(factor, ConvertToNumbers(scale_code)));
      const auto stored = hn::Add(scale_code, SetCode(32));
      low = hn::Or(low, hn::ShiftLeftSame(hn::And(stored, SetCode(15)), static_cast<int>(4 * group)));
      high = hn::Or(high, hn::ShiftLeftSame(hn::ShiftRight<4>(stored), static_cast<int>(2 * group)));
      const auto code = [&](std::size_t i) HWY_ATTR {
        return FindIq4Code(hn::Mul(inverse_scale, LoadAt(block.x, kGroup * group + i)));
      };
      StoreBytes(to, 8 + 16 * group, 16,
                 [&](std::size_t i) HWY_ATTR { return hn::Or(code(i), hn::ShiftLeft<4>(code(i + 16))); });
    }
    to.store_bytes(high, 2);
    to.store_bytes(hn::ShiftRight<8>(high), 3);
    to.store_words(low, 4);
  });
}

// Returns the exponent that ggml chooses for a block with this largest magnitude. A negative exponent wraps to a
// byte, as in ggml.
HWY_INLINE std::uint8_t ChooseMxfp4Exponent(float peak) {
  if (!(peak > 0) || !std::isfinite(peak)) return 0;
  return static_cast<std::uint8_t>(static_cast<int>(std::floor(std::log2(peak)) - 2 + 127));
}

void EncodeMxfp4(const BlockRows& rows, std::byte* out) {
  const BlockRows plain{rows.values, rows.row_count, rows.row_length, nullptr};
  EncodeLanes<32, 17, false>(plain, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    HWY_ALIGN float peaks[kMaxLanes];
    auto peak = Zero();
    for (std::size_t i = 0; i < 32; ++i) peak = hn::Max(peak, hn::Abs(LoadAt(block.x, i)));
    hn::Store(peak, Floats(), peaks);
    for (std::size_t lane = 0; lane < hn::Lanes(Floats()); ++lane) {
      const std::uint8_t exponent = ChooseMxfp4Exponent(peaks[lane]);
      if (lane < to.live) to.blocks[lane * to.stride] = static_cast<std::byte>(exponent);
      peaks[lane] = decode_mxfp4_scale(exponent);
    }
    const auto scale = hn::Load(Floats(), peaks);
    // These are the middles between neighbouring magnitudes. A magnitude at a middle gets the smaller code.
    constexpr float kMiddles[7] = {0.5F, 1.5F, 2.5F, 3.5F, 5.0F, 7.0F, 10.0F};
    const auto code = [&](std::size_t i) HWY_ATTR {
      const auto x = LoadAt(block.x, i);
      auto sum = Zero();
      for (const float middle : kMiddles)
        sum = hn::Add(sum, hn::IfThenElseZero(hn::Gt(hn::Abs(x), hn::Mul(Set(middle), scale)), Set(1)));
      const auto negative = Both(hn::Lt(x, Zero()), hn::Gt(sum, Zero()));
      return hn::ConvertTo(Integers(), hn::Add(sum, hn::IfThenElseZero(negative, Set(8))));
    };
    StoreBytes(to, 1, 16, [&](std::size_t i) HWY_ATTR { return hn::Or(code(i), hn::ShiftLeft<4>(code(i + 16))); });
  });
}

// Returns ggml's E4M3 code, without a sign. Halves round up. Numbers of 248 or more become 448, and those below 2^-6
// get at most the code 7.
HWY_INLINE std::uint8_t RoundToNvfp4Scale(float scale) {
  constexpr int kBias = 7;
  constexpr std::uint8_t kGreatest = 0x7e;
  if (!(scale > 0)) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(std::min(scale, 448.0F));
  const int exponent = static_cast<int>(bits >> 23) - 127 + kBias;
  if (exponent <= 0) return static_cast<std::uint8_t>(std::min(7, static_cast<int>(scale * 512.0F + 0.5F)));
  if (exponent >= 15) return kGreatest;
  const auto code = static_cast<int>(bits >> 20 & 7U) + static_cast<int>(bits >> 19 & 1U) + 8 * exponent;
  return code >= 15 * 8 ? kGreatest : static_cast<std::uint8_t>(code);
}

void EncodeNvfp4(const BlockRows& rows, std::byte* out) {
  const BlockRows plain{rows.values, rows.row_count, rows.row_length, nullptr};
  EncodeLanes<64, 36, false>(plain, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    HWY_ALIGN float scales[kMaxLanes];
    for (std::size_t group = 0; group < 4; ++group) {
      auto peak = Zero();
      for (std::size_t i = 0; i < 16; ++i) peak = hn::Max(peak, hn::Abs(LoadAt(block.x, 16 * group + i)));
      hn::Store(hn::Div(peak, Set(6)), Floats(), scales);
      for (std::size_t lane = 0; lane < hn::Lanes(Floats()); ++lane) {
        const std::uint8_t code = RoundToNvfp4Scale(scales[lane]);
        if (lane < to.live) to.blocks[lane * to.stride + group] = static_cast<std::byte>(code);
        scales[lane] = decode_nvfp4_scale(code);
      }
      const auto scale = hn::Load(Floats(), scales);
      // Compares rounded errors, as ggml does. Numbers far beyond 12 * scale become 0, because all their errors round
      // to the same number.
      const auto code = [&](std::size_t i) HWY_ATTR {
        const auto x = LoadAt(block.x, 16 * group + i);
        auto best = SetCode(0);
        auto least = hn::Abs(x);
        for (std::size_t j = 1; j < kFp4Numbers.size(); ++j) {
          const auto error = hn::Abs(hn::Sub(hn::Mul(Set(kFp4Numbers[j]), scale), x));
          const auto better = hn::Lt(error, least);
          least = hn::IfThenElse(better, error, least);
          best = hn::IfThenElse(hn::RebindMask(Integers(), better), SetCode(static_cast<int>(j)), best);
        }
        return best;
      };
      StoreBytes(to, 4 + 8 * group, 8,
                 [&](std::size_t i) HWY_ATTR { return hn::Or(code(i), hn::ShiftLeft<4>(code(i + 8))); });
    }
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_ENCODER(encode_iq4_nl, EncodeIq4_Nl)
POISE_EXPORT_ENCODER(encode_iq4_xs, EncodeIq4_Xs)
POISE_EXPORT_ENCODER(encode_mxfp4, EncodeMxfp4)
POISE_EXPORT_ENCODER(encode_nvfp4, EncodeNvfp4)

}  // namespace poise
#endif
