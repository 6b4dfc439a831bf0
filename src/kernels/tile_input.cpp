// How the x of several tokens becomes tiles.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/stored_type.hpp"
#include "kernels/tile_panel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_input.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/round_step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void TakeTileIntegers(const InputPart&, std::size_t, const TileLayout&, std::byte*) {}

#else

// The exact sums of a block (tile_layout.hpp).
static_assert(kTileCodeBlock * kLargestWord * 128 <= std::numeric_limits<std::int32_t>::max());

void TakeTileIntegers(const InputPart& part, std::size_t tokens, const TileLayout& layout, std::byte* out) {
  alignas(64) std::int8_t upper[kTileTokens][2 * tile_row_stride(kTileBlock)] = {};
  alignas(64) std::int8_t lower[kTileTokens][2 * tile_row_stride(kTileBlock)] = {};
  for (std::size_t b = part.blocks.first; b < part.blocks.last; ++b) {
    const std::size_t columns = layout.columns_of(b);
    const std::size_t count = std::min(columns, layout.columns - b * kTileCodeBlock);
    const float* const x = part.x + (b - part.blocks.first) * kTileCodeBlock;
    for (std::size_t g = part.tokens.first; g < part.tokens.last; g += kTileTokens) {
      std::byte* const group = out + layout.place(g / kTileTokens, b, tokens);
      auto& factors = *reinterpret_cast<CodeFactors*>(group + layout.number_bytes(b));
      for (std::size_t t = 0; t < std::min(kTileTokens, part.tokens.last - g); ++t) {
        const RoundedStep rounded = RoundStep<true>(x + (g + t) * part.stride, count, upper[t], lower[t]);
        std::fill(upper[t] + count, upper[t] + columns, std::int8_t{0});
        std::fill(lower[t] + count, lower[t] + columns, std::int8_t{0});
        factors.starts[t] = -layout.taken * rounded.sum;
        factors.scales[t] = rounded.scale;
        factors.sums[t] = rounded.scale * static_cast<float>(rounded.sum);
      }
      put_tile_words(upper, sizeof upper[0], columns / 4, group);
      put_tile_words(lower, sizeof lower[0], columns / 4, group + columns * kTileTokens);
    }
  }
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(TakeTileIntegers);

void take_tile_parts(const InputPart& part, std::size_t tokens, const TileLayout& layout, std::byte* out) {
  alignas(64) float numbers[kTileBlock];
  alignas(64) std::uint16_t parts[kMostTileParts][kTileTokens][tile_row_stride(kTileBlock)] = {};
  for (std::size_t b = part.blocks.first; b < part.blocks.last; ++b) {
    const std::size_t columns = layout.columns_of(b);
    const std::size_t count = std::min(columns, layout.columns - b * kTileBlock);
    const float* const x = part.x + (b - part.blocks.first) * kTileBlock;
    for (std::size_t g = part.tokens.first; g < part.tokens.last; g += kTileTokens) {
      for (std::size_t t = 0; t < std::min(kTileTokens, part.tokens.last - g); ++t) {
        const float* from = x + (g + t) * part.stride;
        if (count < columns) {
          std::copy_n(from, count, numbers);
          std::fill(numbers + count, numbers + columns, 0.0F);
          from = numbers;
        }
        std::uint16_t* const places[kMostTileParts] = {parts[0][t], parts[1][t], parts[2][t]};
        split_floats(from, columns, std::span(places).first(layout.parts));
      }
      std::byte* const group = out + layout.place(g / kTileTokens, b, tokens);
      for (std::size_t p = 0; p < layout.parts; ++p)
        put_tile_words(parts[p], sizeof parts[p][0], columns / 2, group + 2 * p * columns * kTileTokens);
    }
  }
}

}  // namespace

void take_tile_numbers(const InputPart& part, std::size_t tokens, const TileLayout& layout, std::byte* out) {
  if (layout.parts == 0) return HWY_DYNAMIC_DISPATCH(TakeTileIntegers)(part, tokens, layout, out);
  take_tile_parts(part, tokens, layout, out);
}

}  // namespace poise
#endif
