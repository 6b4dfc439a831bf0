// Converts the x of several tokens to tiles for a matrix unit.
#include <algorithm>
#include <limits>

#include "kernels/product_kernels.hpp"
#include "kernels/tile_layout.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_input.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/round_step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void ConvertToTileIntegers(const InputPart&, KernelInput::Tiles&) {}

#else

// Sums of a block are exact (tile_layout.hpp).
static_assert(kTileCodeBlock * kLargestWord * 128 <= std::numeric_limits<std::int32_t>::max());

// Requires: part.tokens.first is a multiple of kTileTokens. If the last tile has fewer than kTileTokens tokens, its
// other places get arbitrary numbers, which change no result.
void ConvertToTileIntegers(const InputPart& part, KernelInput::Tiles& tiles) {
  const TileLayout& layout = tiles.layout;
  alignas(64) std::int8_t upper[kTileTokens][2 * find_tile_row_stride(kTileBlock)] = {};
  alignas(64) std::int8_t lower[kTileTokens][2 * find_tile_row_stride(kTileBlock)] = {};
  for (std::size_t b = part.blocks.first; b < part.blocks.last; ++b) {
    const std::size_t columns = layout.count_columns(b);
    const std::size_t count = std::min(columns, layout.columns - b * kTileCodeBlock);
    const float* const x = part.x + (b - part.blocks.first) * kTileCodeBlock;
    for (std::size_t g = part.tokens.first; g < part.tokens.last; g += kTileTokens) {
      std::byte* const group = tiles.numbers.data() + layout.find_offset(g / kTileTokens, b, tiles.tokens);
      auto& factors = *reinterpret_cast<CodeFactors*>(group + layout.count_number_bytes(b));
      for (std::size_t t = 0; t < std::min(kTileTokens, part.tokens.last - g); ++t) {
        const RoundedStep rounded = RoundStep<true>(x + (g + t) * part.stride, count, upper[t], lower[t]);
        std::fill(upper[t] + count, upper[t] + columns, std::int8_t{0});
        std::fill(lower[t] + count, lower[t] + columns, std::int8_t{0});
        factors.starts[t] = -layout.taken * rounded.sum;
        factors.scales[t] = rounded.scale;
        factors.sums[t] = rounded.scale * static_cast<float>(rounded.sum);
      }
      store_tile_words(upper, sizeof upper[0], columns / 4, group);
      store_tile_words(lower, sizeof lower[0], columns / 4, group + columns * kTileTokens);
    }
  }
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(ConvertToTileIntegers);

void KernelInput::Tiles::convert(const InputPart& part) {
  if (layout.parts == 0) return HWY_DYNAMIC_DISPATCH(ConvertToTileIntegers)(part, *this);
  alignas(64) float padded[kTileBlock];
  alignas(64) std::uint16_t parts[kMostTileParts][kTileTokens][find_tile_row_stride(kTileBlock)] = {};
  for (std::size_t b = part.blocks.first; b < part.blocks.last; ++b) {
    const std::size_t columns = layout.count_columns(b);
    const std::size_t count = std::min(columns, layout.columns - b * kTileBlock);
    const float* const x = part.x + (b - part.blocks.first) * kTileBlock;
    for (std::size_t g = part.tokens.first; g < part.tokens.last; g += kTileTokens) {
      for (std::size_t t = 0; t < std::min(kTileTokens, part.tokens.last - g); ++t) {
        const float* from = x + (g + t) * part.stride;
        if (count < columns) {
          std::copy_n(from, count, padded);
          std::fill(padded + count, padded + columns, 0.0F);
          from = padded;
        }
        std::uint16_t* const places[kMostTileParts] = {parts[0][t], parts[1][t], parts[2][t]};
        split_floats(from, columns, std::span(places).first(layout.parts));
      }
      std::byte* const group = numbers.data() + layout.find_offset(g / kTileTokens, b, tokens);
      for (std::size_t p = 0; p < layout.parts; ++p)
        store_tile_words(parts[p], sizeof parts[p][0], columns / 2, group + 2 * p * columns * kTileTokens);
    }
  }
}

}  // namespace poise
#endif
