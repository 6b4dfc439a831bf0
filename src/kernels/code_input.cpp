// Converts the x of several tokens to integers for panels of codes (code_panel.hpp).
#include <algorithm>
#include <cstring>

#include "kernels/code_panel.hpp"
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/code_input.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/round_step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void ConvertToPanels(const InputPart&, KernelInput::Panels&) {}

#else

// Stores a step (columns that share a scale) of token n of a group: `count` bytes. `plane` has the step of all tokens:
// [kCodeTokens, count] if tiled, else [count / 4, kCodeTokens, 4].
HWY_INLINE void StoreStep(const void* numbers, std::size_t count, bool tiled, std::size_t n, std::byte* plane) {
  if (tiled) {
    std::memcpy(plane + n * count, numbers, count);
    return;
  }
  const auto* const bytes = static_cast<const std::byte*>(numbers);
  for (std::size_t i = 0; i < count; i += 4) std::memcpy(plane + i * kCodeTokens + 4 * n, bytes + i, 4);
}

// Rounds a step of token n of a group, and stores its integers. Returns their scale and sums.
template <PanelIntegers kIntegers>
HWY_INLINE RoundedStep ConvertStep(const float* x, const CodeLayout& layout, std::size_t n, std::byte* to) {
  if (kIntegers == PanelIntegers::words && !layout.tiled) {
    alignas(64) std::int16_t integers[kMostStep];
    const auto load = [x](std::size_t i) HWY_ATTR { return hn::LoadU(StepFloats(), x + i); };
    const RoundedStep rounded = RoundStepTo16Bits<kLargestWord>(load, layout.step, integers);
    for (std::size_t i = 0; i < layout.step; i += 4) std::swap(integers[i + 1], integers[i + 2]);
    StoreStep(integers, 2 * layout.step, false, n, to);
    return rounded;
  } else {
    constexpr bool kWords = kIntegers == PanelIntegers::words;
    alignas(64) std::int8_t upper[kMostTiledStep];
    alignas(64) std::int8_t lower[kMostTiledStep];
    const RoundedStep rounded = RoundStep<kWords>(x, layout.step, upper, lower);
    if constexpr (kWords) StoreStep(upper, layout.step, layout.tiled, n, to);
    StoreStep(lower, layout.step, layout.tiled, n, to + (kWords ? layout.step * kCodeTokens : 0));
    return rounded;
  }
}

template <PanelIntegers kIntegers>
void ConvertSteps(const InputPart& part, KernelInput::Panels& panels) {
  const CodeLayout& layout = panels.layout;
  const std::size_t step_bytes = layout.count_step_bytes();
  for (std::size_t block = part.blocks.first; block < part.blocks.last; ++block) {
    const std::size_t steps = layout.count_steps(block);
    for (std::size_t t = part.tokens.first; t < part.tokens.last; ++t) {
      const float* from = part.x + t * part.stride + (block - part.blocks.first) * layout.block_columns();
      std::byte* to = panels.numbers.data() + layout.find_offset(t / kCodeTokens, block, panels.tokens);
      const std::size_t lane = t % kCodeTokens;
      for (std::size_t s = 0; s < steps; ++s, from += layout.step, to += step_bytes) {
        const RoundedStep rounded = ConvertStep<kIntegers>(from, layout, lane, to);
        const std::int32_t start = -layout.offset * rounded.sum;
        const float sum = rounded.scale * static_cast<float>(rounded.sum);
        std::byte* const factors = to + layout.count_integer_bytes() + 4 * lane;
        std::memcpy(factors, &start, 4);
        std::memcpy(factors + 4 * kCodeTokens, &rounded.scale, 4);
        std::memcpy(factors + 8 * kCodeTokens, &sum, 4);
      }
    }
  }
}

// Rounds the same step of `count` tokens, at most four. Stores their integers at `to`, and their scales after the
// integers of the group. The integers of missing tokens are 0. Rounded numbers need no sums, because they have no
// minimums.
HWY_INLINE void ConvertRoundedStep(const float* x, std::size_t stride, std::size_t count, const CodeLayout& layout,
                                   std::byte* to) {
#if HWY_TARGET <= HWY_AVX3
  alignas(64) std::int16_t integers[4][kMostRoundedStep] = {};
  std::byte* const factors = to + layout.count_integer_bytes();
  for (std::size_t n = 0; n < count; ++n) {
    const auto load = [&](std::size_t i) HWY_ATTR { return hn::LoadU(StepFloats(), x + n * stride + i); };
    const float scale = RoundStepTo16Bits<kLargestRounded>(load, layout.step, integers[n]).scale;
    std::memcpy(factors + 4 * (kCodeTokens + n), &scale, 4);
  }
  StorePairs(integers, layout.step, reinterpret_cast<std::uint8_t*>(to), 4 * kCodeTokens);
#endif
}

void ConvertToRounded(const InputPart& part, KernelInput::Panels& panels) {
  constexpr std::size_t kTogether = 4;
  const CodeLayout& layout = panels.layout;
  const std::size_t step_bytes = layout.count_step_bytes();
  for (std::size_t block = part.blocks.first; block < part.blocks.last; ++block) {
    for (std::size_t t = part.tokens.first; t < part.tokens.last; t += kTogether) {
      const float* from = part.x + t * part.stride + (block - part.blocks.first) * layout.block_columns();
      std::byte* to = panels.numbers.data() + layout.find_offset(t / kCodeTokens, block, panels.tokens);
      for (std::size_t s = 0; s < layout.count_steps(block); ++s, from += layout.step, to += step_bytes) {
        if (t % kCodeTokens == 0) std::memset(to + layout.count_integer_bytes(), 0, 4 * kCodeTokens);  // no offsets
        ConvertRoundedStep(from, part.stride, std::min(kTogether, part.tokens.last - t), layout,
                           to + 4 * (t % kCodeTokens));
      }
    }
  }
}

void ConvertToPanels(const InputPart& part, KernelInput::Panels& panels) {
  switch (panels.layout.integers) {
    case PanelIntegers::bytes: return ConvertSteps<PanelIntegers::bytes>(part, panels);
    case PanelIntegers::words: return ConvertSteps<PanelIntegers::words>(part, panels);
    case PanelIntegers::rounded: return ConvertToRounded(part, panels);
  }
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(ConvertToPanels);

void KernelInput::Panels::convert(const InputPart& part) { HWY_DYNAMIC_DISPATCH(ConvertToPanels)(part, *this); }

}  // namespace poise
#endif
