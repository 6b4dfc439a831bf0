// How the x of several tokens becomes integers for panels of codes.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/code_panel.hpp"
#include "kernels/stored_type.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/code_input.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void TakeCodes(const float*, std::size_t, std::size_t, std::size_t, const CodeLayout&, std::byte*) {}

#else

using StepFloats = hn::CappedTag<float, 16>;

// What a step of a token comes to.
struct RoundedStep {
  float scale;
  std::int32_t sum;
};

// `upper` is 256 times, of words alone.
template <bool kWords>
HWY_INLINE RoundedStep RoundStep(const float* x, std::size_t count, std::int8_t* upper, std::int8_t* lower) {
  const StepFloats floats;
  const hn::RebindToUnsigned<StepFloats> bits;
  const hn::RebindToSigned<StepFloats> integers;
  const hn::Rebind<std::int16_t, StepFloats> words;
  const hn::Rebind<std::int8_t, StepFloats> bytes;
  constexpr float kLargest = kWords ? 32639 : 127;  // both bytes of it are below 128
  const std::size_t lanes = hn::Lanes(floats);
  auto most = hn::Zero(bits);  // as bits of a float: NaN and infinity are larger than numbers
  for (std::size_t i = 0; i < count; i += lanes)
    most = hn::Max(most, hn::And(hn::BitCast(bits, hn::LoadU(floats, x + i)), hn::Set(bits, 0x7fffffffU)));
  const std::uint32_t most_bits = hn::GetLane(hn::MaxOfLanes(bits, most));
  float largest = 0;
  std::memcpy(&largest, &most_bits, sizeof largest);
  if (!(largest >= 1e-30F && largest <= std::numeric_limits<float>::max())) {
    if (kWords) std::fill_n(upper, count, std::int8_t{0});
    std::fill_n(lower, count, std::int8_t{0});
    return {largest < 1e-30F ? 0 : std::numeric_limits<float>::quiet_NaN(), 0};
  }
  const auto factor = hn::Set(floats, kLargest / largest);
  auto sum = hn::Zero(integers);
  const auto put = [&](auto numbers, std::int8_t* to)
                       HWY_ATTR { hn::StoreU(hn::DemoteTo(bytes, hn::DemoteTo(words, numbers)), bytes, to); };
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto numbers = hn::NearestInt(hn::Mul(hn::LoadU(floats, x + i), factor));
    sum = hn::Add(sum, numbers);
    if constexpr (kWords) {
      const auto high = hn::ShiftRight<8>(hn::Add(numbers, hn::Set(integers, 128)));
      put(high, upper + i);
      put(hn::Sub(numbers, hn::ShiftLeft<8>(high)), lower + i);
    } else {
      put(numbers, lower + i);
    }
  }
  return {largest / kLargest, hn::GetLane(hn::SumOfLanes(integers, sum))};
}

// Four columns at a time to where those of one token are.
HWY_INLINE void Spread(const std::int8_t* numbers, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; i += 4) std::memcpy(to + i * kCodeTokens, numbers + i, 4);
}

template <bool kWords>
void TakeSteps(const float* x, std::size_t first, std::size_t last, std::size_t tokens, const CodeLayout& layout,
               std::byte* out) {
  const std::size_t step_bytes = layout.step_bytes();
  for (std::size_t block = 0; block < layout.blocks(); ++block) {
    const std::size_t steps = layout.steps_of(block);
    for (std::size_t t = first; t < last; ++t) {
      const float* from = x + t * layout.columns + block * kCodeBlock;
      std::byte* to = out + layout.place(t / kCodeTokens, block, tokens);
      const std::size_t lane = t % kCodeTokens;
      for (std::size_t s = 0; s < steps; ++s, from += layout.step, to += step_bytes) {
        alignas(64) std::int8_t upper[kMostStep];
        alignas(64) std::int8_t lower[kMostStep];
        const RoundedStep rounded = RoundStep<kWords>(from, layout.step, upper, lower);
        std::byte* integers = to + 4 * lane;
        if constexpr (kWords) {
          Spread(upper, layout.step, integers);
          integers += layout.step * kCodeTokens;
        }
        Spread(lower, layout.step, integers);
        const std::int32_t start = -layout.offset * rounded.sum;
        const float sum = rounded.scale * static_cast<float>(rounded.sum);
        std::byte* const factors = to + layout.integer_bytes() + 4 * lane;
        std::memcpy(factors, &start, 4);
        std::memcpy(factors + 4 * kCodeTokens, &rounded.scale, 4);
        std::memcpy(factors + 8 * kCodeTokens, &sum, 4);
      }
    }
  }
}

void TakeCodes(const float* x, std::size_t first, std::size_t last, std::size_t tokens, const CodeLayout& layout,
               std::byte* out) {
  if (layout.words) return TakeSteps<true>(x, first, last, tokens, layout, out);
  TakeSteps<false>(x, first, last, tokens, layout, out);
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(TakeCodes);

}  // namespace

void take_codes(const float* x, std::size_t first, std::size_t last, std::size_t tokens, const CodeLayout& layout,
                std::byte* out) {
  HWY_DYNAMIC_DISPATCH(TakeCodes)(x, first, last, tokens, layout, out);
}

}  // namespace poise
#endif
