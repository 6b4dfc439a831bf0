// Encodes TQ1_0 and TQ2_0: an element is -1, 0 or 1 times the scale, which is the largest magnitude of the block.
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/encode_small_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 256;

// Stores the scales, then calls store(output, code); code(i) returns code i of each block: 0, 1 or 2.
template <std::size_t kBytes, typename Store>
HWY_INLINE void EncodeTernary(const BlockRows& rows, std::byte* out, Store store) {
  const BlockRows plain{rows.values, rows.row_count, rows.row_length, nullptr};
  EncodeLanes<kElements, kBytes, false>(plain, out, [&](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    auto peak = Zero();
    for (std::size_t i = 0; i < kElements; ++i) peak = hn::Max(peak, hn::Abs(LoadAt(block.x, i)));
    const auto inverse = InvertOrZero(peak);
    to.store_halves(peak, kBytes - 2);
    store(to, [&](std::size_t i)
                  HWY_ATTR { return hn::Add(RoundHalvesAway(hn::Mul(LoadAt(block.x, i), inverse)), SetCode(1)); });
  });
}

// Returns a byte with the base 3 digits of kDigits elements as a fraction. The indices of the elements are first,
// first + apart, first + 2 * apart, ...
template <int kDigits, typename Code>
HWY_INLINE Codes PackDigits(std::size_t first, std::size_t apart, Code code) {
  auto digits = code(first);
  for (std::size_t i = 1; i < kDigits; ++i) digits = hn::Add(hn::Mul(digits, SetCode(3)), code(first + i * apart));
  if (kDigits == 4) digits = hn::Mul(digits, SetCode(3));
  // Multiplies the digits by 256 / 243, and rounds up.
  const hn::RebindToUnsigned<Integers> unsigned_integers;
  const auto scaled = hn::BitCast(unsigned_integers, hn::Add(hn::ShiftLeft<8>(digits), SetCode(242)));
  return hn::BitCast(Integers(), hn::ShiftRight<24>(hn::Mul(scaled, hn::Set(unsigned_integers, 69043U))));
}

void EncodeTq1_0(const BlockRows& rows, std::byte* out) {
  EncodeTernary<54>(rows, out, [](const LaneOutput& to, auto code) HWY_ATTR {
    StoreBytes(to, 0, 32, [&](std::size_t i) HWY_ATTR { return PackDigits<5>(i, 32, code); });
    StoreBytes(to, 32, 16, [&](std::size_t i) HWY_ATTR { return PackDigits<5>(160 + i, 16, code); });
    StoreBytes(to, 48, 4, [&](std::size_t i) HWY_ATTR { return PackDigits<4>(240 + i, 4, code); });
  });
}

void EncodeTq2_0(const BlockRows& rows, std::byte* out) {
  EncodeTernary<66>(rows, out, [](const LaneOutput& to, auto code) HWY_ATTR {
    for (std::size_t half = 0; half < 2; ++half) {
      StoreBytes(to, 32 * half, 32, [&](std::size_t i) HWY_ATTR {
        const std::size_t first = 128 * half + i;
        const auto low = hn::Or(code(first), hn::ShiftLeft<2>(code(first + 32)));
        return hn::Or(low, hn::Or(hn::ShiftLeft<4>(code(first + 64)), hn::ShiftLeft<6>(code(first + 96))));
      });
    }
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_ENCODER(encode_tq1_0, EncodeTq1_0)
POISE_EXPORT_ENCODER(encode_tq2_0, EncodeTq2_0)

}  // namespace poise
#endif
