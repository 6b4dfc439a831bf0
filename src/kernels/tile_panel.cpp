#include "kernels/tile_panel.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_panel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

static_assert(kCodeRows == kTileRows && kTileRows % kMaxLanes == 0);

// Lanes are rows.
void RoundCodes(const CodePart& part, const CodeForm& form, std::uint16_t* out) {
  const hn::RebindToUnsigned<Floats> words;
  const hn::RebindToSigned<Floats> integers;
  const auto byte = hn::Set(words, 255);
  const auto taken = hn::Set(Floats(), static_cast<float>(-form.offset));
  // The upper half of its bits is NaN, too, with something added for rounding.
  const auto nan = hn::Set(Floats(), std::numeric_limits<float>::quiet_NaN());
  const auto factor = [&](const float* from) HWY_ATTR {
    const auto loaded = Load(from);
    return hn::IfThenElse(hn::Eq(loaded, loaded), loaded, nan);
  };
  for (std::size_t s = 0; s < part.count / part.step; ++s) {
    for (std::size_t r = 0; r < kTileRows; r += hn::Lanes(Floats())) {
      const auto scale = factor(part.scales + s * kTileRows + r);
      const auto min = form.has_mins ? factor(part.mins + s * kTileRows + r) : hn::Zero(Floats());
      const auto start = hn::MulAdd(taken, scale, min);  // what a code of 0 comes to
      const auto rounded = [&](auto code) HWY_ATTR {
        const auto number = hn::ConvertTo(Floats(), hn::BitCast(integers, code));
        return hn::Add(hn::BitCast(words, hn::MulAdd(number, scale, start)), hn::Set(words, 0x8000));
      };
      const auto put = [&](auto first, auto second, std::size_t column) HWY_ATTR {
        const auto upper = hn::And(rounded(second), hn::Set(words, 0xffff0000));
        hn::StoreU(hn::Or(hn::ShiftRight<16>(rounded(first)), upper), words,
                   reinterpret_cast<std::uint32_t*>(out + column * kTileRows) + r);
      };
      for (std::size_t i = s * part.step; i < (s + 1) * part.step; i += 4) {
        const auto four = hn::LoadU(words, reinterpret_cast<const std::uint32_t*>(part.codes + i * kTileRows) + r);
        put(hn::And(four, byte), hn::And(hn::ShiftRight<8>(four), byte), i);
        put(hn::And(hn::ShiftRight<16>(four), byte), hn::ShiftRight<24>(four), i + 2);
      }
    }
  }
}

// Turns four pairs of four rows.
HWY_INLINE void TurnPairs(const std::uint16_t* rows, std::size_t stride, std::uint16_t* out) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t r = 0; r < 4; ++r) std::memcpy(out + 2 * (i * kTileRows + r), rows + r * stride + 2 * i, 4);
  }
#else
  const hn::FixedTag<std::uint32_t, 4> pairs;
  const hn::FixedTag<std::uint64_t, 2> two;
  const auto row = [&](std::size_t r)
                       HWY_ATTR { return hn::LoadU(pairs, reinterpret_cast<const std::uint32_t*>(rows + r * stride)); };
  const auto put = [&](auto turned, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::BitCast(pairs, turned), pairs, reinterpret_cast<std::uint32_t*>(out) + i * kTileRows);
  };
  const auto low01 = hn::BitCast(two, hn::InterleaveLower(pairs, row(0), row(1)));
  const auto low23 = hn::BitCast(two, hn::InterleaveLower(pairs, row(2), row(3)));
  const auto high01 = hn::BitCast(two, hn::InterleaveUpper(pairs, row(0), row(1)));
  const auto high23 = hn::BitCast(two, hn::InterleaveUpper(pairs, row(2), row(3)));
  put(hn::InterleaveLower(two, low01, low23), 0);
  put(hn::InterleaveUpper(two, low01, low23), 1);
  put(hn::InterleaveLower(two, high01, high23), 2);
  put(hn::InterleaveUpper(two, high01, high23), 3);
#endif
}

void PutPairs(const std::uint16_t* rows, std::size_t stride, std::size_t columns, std::uint16_t* out) {
  for (std::size_t i = 0; i < columns; i += 8) {
    for (std::size_t r = 0; r < kPairedRows; r += 4)
      TurnPairs(rows + r * stride + i, stride, out + i * kTileRows + 2 * r);
  }
}

void AddCodeSums(const std::int32_t* upper, const std::int32_t* lower, const CodeFactors& factors, std::size_t tokens,
                 float* sums) {
  const hn::RebindToSigned<Floats> integers;
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto start = hn::Set(integers, factors.starts[t]);
    const auto scale = hn::Set(Floats(), factors.scales[t]);
    for (std::size_t r = 0; r < kTileRows; r += hn::Lanes(Floats())) {
      const std::size_t at = t * kTileRows + r;
      // 32 bits hold the sum of all three, and the rest does not matter.
      const auto sum =
          hn::Add(hn::Add(hn::ShiftLeft<8>(hn::LoadU(integers, upper + at)), start), hn::LoadU(integers, lower + at));
      hn::StoreU(hn::MulAdd(hn::ConvertTo(Floats(), sum), scale, Load(sums + at)), Floats(), sums + at);
    }
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(RoundCodes);
HWY_EXPORT(PutPairs);
HWY_EXPORT(AddCodeSums);

}  // namespace

void round_codes(const CodePart& part, const CodeForm& form, std::uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(RoundCodes)(part, form, out);
}

void put_pairs(const std::uint16_t* rows, std::size_t stride, std::size_t columns, std::uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(PutPairs)(rows, stride, columns, out);
}

void add_code_sums(const std::int32_t* upper, const std::int32_t* lower, const CodeFactors& factors, std::size_t tokens,
                   float* sums) {
  HWY_DYNAMIC_DISPATCH(AddCodeSums)(upper, lower, factors, tokens, sums);
}

}  // namespace poise
#endif
