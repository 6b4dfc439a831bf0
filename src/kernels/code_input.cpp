// This file converts the x of several tokens to integers for panels of codes.
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

// Stores a step of the n-th token in its plane.
HWY_INLINE void StoreStep(const std::int8_t* numbers, const CodeLayout& layout, std::size_t n, std::byte* plane) {
  if (layout.tiled) {
    std::memcpy(plane + n * layout.step, numbers, layout.step);
    return;
  }
  for (std::size_t i = 0; i < layout.step; i += 4) std::memcpy(plane + i * kCodeTokens + 4 * n, numbers + i, 4);
}

template <bool kWords>
void ConvertSteps(const InputPart& part, KernelInput::Panels& panels) {
  const CodeLayout& layout = panels.layout;
  const std::size_t step_bytes = layout.step_bytes();
  for (std::size_t block = part.blocks.first; block < part.blocks.last; ++block) {
    const std::size_t steps = layout.count_steps(block);
    for (std::size_t t = part.tokens.first; t < part.tokens.last; ++t) {
      const float* from = part.x + t * part.stride + (block - part.blocks.first) * kCodeBlock;
      std::byte* to = panels.numbers.data() + layout.place(t / kCodeTokens, block, panels.tokens);
      const std::size_t lane = t % kCodeTokens;
      for (std::size_t s = 0; s < steps; ++s, from += layout.step, to += step_bytes) {
        alignas(64) std::int8_t upper[kMostTiledStep];
        alignas(64) std::int8_t lower[kMostTiledStep];
        const RoundedStep rounded = RoundStep<kWords>(from, layout.step, upper, lower);
        if constexpr (kWords) StoreStep(upper, layout, lane, to);
        StoreStep(lower, layout, lane, to + (kWords ? layout.step * kCodeTokens : 0));
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

// Requires: the part begins with a multiple of kCodeTokens.
void ConvertToPanels(const InputPart& part, KernelInput::Panels& panels) {
  panels.layout.words ? ConvertSteps<true>(part, panels) : ConvertSteps<false>(part, panels);
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
