// Encodes Q4_0 to Q8_0. The scale of a block depends on its number of largest magnitude (the peak), or on its range.
// With an importance matrix, a search finds the scale, except for Q8_0.
#include <algorithm>
#include <cmath>

#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/encode_scaled_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/searches-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 32;

// Computes weights of squared errors: importance * sqrt(mean square of the row + x^2).
HWY_INLINE void Weigh(const LaneBlocks& block, float* weights) {
  for (std::size_t i = 0; i < kElements; ++i) {
    const auto x = LoadAt(block.x, i);
    StoreAt(hn::Mul(LoadAt(block.importance, i), hn::Sqrt(hn::Add(block.row_means, hn::Mul(x, x)))), weights, i);
  }
}

// Stores codes of four bits: element i shares a byte with element 16 + i.
template <typename Code>
HWY_INLINE void StoreNibbles(const LaneOutput& out, std::size_t offset, Code code) {
  StoreBytes(out, offset, 16, [&](std::size_t i) HWY_ATTR { return hn::Or(code(i), hn::ShiftLeft<4>(code(i + 16))); });
}

// Stores codes of five bits: first the fifth bits, then the other four.
template <typename Code>
HWY_INLINE void StoreFiveBits(const LaneOutput& out, std::size_t offset, Code code) {
  const auto nibble = SetCode(15);
  auto fifth = SetCode(0);
  StoreBytes(out, offset + 4, 16, [&](std::size_t i) HWY_ATTR {
    const auto low = code(i);
    const auto high = code(i + 16);
    fifth = hn::Or(fifth, hn::ShiftLeftSame(hn::And(hn::ShiftRight<4>(low), SetCode(1)), static_cast<int>(i)));
    fifth = hn::Or(fifth, hn::ShiftLeftSame(hn::And(hn::ShiftRight<4>(high), SetCode(1)), static_cast<int>(i) + 16));
    return hn::Or(hn::And(low, nibble), hn::ShiftLeft<4>(hn::And(high, nibble)));
  });
  out.store_words(fifth, offset);
}

// Encodes numbers as codes from 0 to 2 * kLargest - 1; the number 0 becomes kLargest. With an importance, all codes of
// a block are 0 if its numbers are nearly zero.
template <int kLargest, typename Store>
HWY_INLINE void EncodeSymmetric(const LaneBlocks& block, const LaneOutput& out, Store store) {
  if (block.importance != nullptr) {
    HWY_ALIGN float weights[kElements * kMaxLanes];
    Weigh(block, weights);
    const auto found = FindSymmetricScale<kElements, kLargest>(block.x, weights);
    out.store_halves(found.scale, 0);
    store(out, 2, [&](std::size_t i) HWY_ATTR { return found.template compute_code<kLargest>(LoadAt(block.x, i)); });
    return;
  }
  const Peak peak(kElements, [&](std::size_t i) HWY_ATTR { return LoadAt(block.x, i); });
  const auto scale = hn::Div(peak.value, Set(-static_cast<float>(kLargest)));
  const auto inverse = InvertOrZero(scale);
  out.store_halves(scale, 0);
  const auto half = Set(static_cast<float>(kLargest) + 0.5F);
  const auto last = SetCode(2 * kLargest - 1);
  store(out, 2, [&](std::size_t i) HWY_ATTR {
    return hn::Min(last, Truncate(hn::Add(hn::Mul(LoadAt(block.x, i), inverse), half)));
  });
}

// Encodes numbers as codes from 0 to kLargest. Without an importance, the least number gets the code 0.
template <int kLargest, typename Store>
HWY_INLINE void EncodeRange(const LaneBlocks& block, const LaneOutput& out, Store store) {
  if (block.importance != nullptr) {
    HWY_ALIGN float weights[kElements * kMaxLanes];
    Weigh(block, weights);
    const auto found = FindScaleAndMin<kElements, kLargest, true>(block.x, weights, -0.9F, 0.05F, 36);
    out.store_halves(found.scale, 0);
    out.store_halves(found.min, 2);
    store(out, 4, [&](std::size_t i) HWY_ATTR { return found.template compute_code<kLargest>(LoadAt(block.x, i)); });
    return;
  }
  auto min = LoadAt(block.x, 0);
  auto max = min;
  for (std::size_t i = 1; i < kElements; ++i) {
    const auto x = LoadAt(block.x, i);
    min = hn::IfThenElse(hn::Lt(x, min), x, min);
    max = hn::IfThenElse(hn::Gt(x, max), x, max);
  }
  const auto scale = hn::Div(hn::Sub(max, min), Set(static_cast<float>(kLargest)));
  const auto inverse = InvertOrZero(scale);
  out.store_halves(scale, 0);
  out.store_halves(min, 2);
  const auto last = SetCode(kLargest);
  store(out, 4, [&](std::size_t i) HWY_ATTR {
    return hn::Min(last, Truncate(hn::Add(hn::Mul(hn::Sub(LoadAt(block.x, i), min), inverse), Set(0.5F))));
  });
}

constexpr std::size_t kTogether = 16;  // blocks whose scales are computed together, so that their divisions overlap

using Words = hn::Rebind<std::int16_t, Floats>;

HWY_INLINE float FindLargestMagnitude(const float* x) {
  auto largest = Zero();
  for (std::size_t i = 0; i < kElements; i += hn::Lanes(Floats()))
    largest = hn::Max(largest, hn::Abs(hn::LoadU(Floats(), x + i)));
  return hn::GetLane(hn::MaxOfLanes(Floats(), largest));
}

// Returns the first number of largest magnitude. Returns 0, not -0, if all are 0.
HWY_INLINE float FindPeak(const float* x) {
  auto least = Zero();
  auto greatest = Zero();
  for (std::size_t i = 0; i < kElements; i += hn::Lanes(Floats())) {
    const auto numbers = hn::LoadU(Floats(), x + i);
    least = hn::Min(least, numbers);
    greatest = hn::Max(greatest, numbers);
  }
  const float min = hn::GetLane(hn::MinOfLanes(Floats(), least));
  const float max = hn::GetLane(hn::MaxOfLanes(Floats(), greatest));
  if (max == 0 && min == 0) return 0;
  if (max == -min)
    return *std::find_if(x, x + kElements - 1, [&](float number) { return number == max || number == min; });
  return max > -min ? max : min;
}

// Encodes blocks of one scale without a search, and without moving blocks to lanes. Each block begins with the scale:
// the peak (if kDivisor is positive: its magnitude), divided by kDivisor. encode(numbers, 1 / scale, out) stores the
// codes.
template <std::size_t kBytes, int kDivisor, typename Encode>
HWY_INLINE void EncodeEachBlock(const BlockRows& rows, std::byte* out, Encode encode) {
  const std::size_t total = rows.row_count * rows.row_length / kElements;
  for (std::size_t first = 0; first < total; first += kTogether) {
    const std::size_t count = std::min(kTogether, total - first);
    const float* x = rows.values + first * kElements;
    HWY_ALIGN float scales[kTogether] = {};
    HWY_ALIGN float inverses[kTogether];
    for (std::size_t b = 0; b < count; ++b)
      scales[b] = kDivisor > 0 ? FindLargestMagnitude(x + b * kElements) : FindPeak(x + b * kElements);
    for (std::size_t b = 0; b < kTogether; b += hn::Lanes(Floats())) {
      const auto scale = hn::Div(hn::Load(Floats(), scales + b), Set(kDivisor));
      hn::Store(scale, Floats(), scales + b);
      hn::Store(InvertOrZero(scale), Floats(), inverses + b);
    }
    for (std::size_t b = 0; b < count; ++b, x += kElements, out += kBytes) {
      store_half(out, scales[b]);
      if (std::isfinite(inverses[b])) {
        encode(x, Set(inverses[b]), out + 2);
      } else {
        std::fill_n(out + 2, kBytes - 2, std::byte{0});  // ggml's codes for an infinite inverse
      }
    }
  }
}

void EncodeQ4_0(const BlockRows& rows, std::byte* out) {
  if (rows.importance == nullptr) {
    return EncodeEachBlock<18, -8>(rows, out, [](const float* x, Numbers inverse, std::byte* to) HWY_ATTR {
      const auto code = [&](std::size_t i) HWY_ATTR {
        const auto shifted = hn::Add(hn::Mul(hn::LoadU(Floats(), x + i), inverse), Set(8.5F));
        return hn::Min(SetCode(15), Truncate(shifted));
      };
      const hn::Rebind<std::uint8_t, Floats> bytes;
      for (std::size_t i = 0; i < 16; i += hn::Lanes(Floats())) {
        const auto pair = hn::Or(code(i), hn::ShiftLeft<4>(code(i + 16)));
        hn::StoreU(hn::DemoteTo(bytes, hn::DemoteTo(Words(), pair)), bytes, reinterpret_cast<std::uint8_t*>(to) + i);
      }
    });
  }
  EncodeLanes<kElements, 18, true>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    EncodeSymmetric<8>(block, to, [](const LaneOutput& at, std::size_t offset, auto code) HWY_ATTR {
      StoreNibbles(at, offset, code);
    });
  });
}

void EncodeQ4_1(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 20, true>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    EncodeRange<15>(block, to, [](const LaneOutput& at, std::size_t offset, auto code) HWY_ATTR {
      StoreNibbles(at, offset, code);
    });
  });
}

void EncodeQ5_0(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 22, true>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    EncodeSymmetric<16>(block, to, [](const LaneOutput& at, std::size_t offset, auto code) HWY_ATTR {
      StoreFiveBits(at, offset, code);
    });
  });
}

void EncodeQ5_1(const BlockRows& rows, std::byte* out) {
  EncodeLanes<kElements, 24, true>(rows, out, [](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    EncodeRange<31>(block, to, [](const LaneOutput& at, std::size_t offset, auto code) HWY_ATTR {
      StoreFiveBits(at, offset, code);
    });
  });
}

void EncodeQ8_0(const BlockRows& rows, std::byte* out) {
  EncodeEachBlock<34, 127>(rows, out, [](const float* x, Numbers inverse, std::byte* to) HWY_ATTR {
    const hn::Rebind<std::int8_t, Floats> bytes;
    for (std::size_t i = 0; i < kElements; i += hn::Lanes(Floats())) {
      const auto code = RoundHalvesAway(hn::Mul(hn::LoadU(Floats(), x + i), inverse));
      hn::StoreU(hn::DemoteTo(bytes, hn::DemoteTo(Words(), code)), bytes, reinterpret_cast<std::int8_t*>(to) + i);
    }
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_ENCODER(encode_q4_0, EncodeQ4_0)
POISE_EXPORT_ENCODER(encode_q4_1, EncodeQ4_1)
POISE_EXPORT_ENCODER(encode_q5_0, EncodeQ5_0)
POISE_EXPORT_ENCODER(encode_q5_1, EncodeQ5_1)
POISE_EXPORT_ENCODER(encode_q8_0, EncodeQ8_0)

}  // namespace poise
#endif
