// How the x of several tokens becomes tiles.
#include <algorithm>
#include <cstring>

#include "kernels/stored_type.hpp"
#include "kernels/tile_layout.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_input.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/round_step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void TakeTileIntegers(const float*, std::size_t, std::size_t, std::size_t, const TileLayout&, std::byte*) {}

#else

// A row of each tile, from `to` on.
HWY_INLINE void SpreadRows(const std::int8_t* numbers, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; i += kTileBytes) std::memcpy(to + i * kTileTokens, numbers + i, kTileBytes);
}

void TakeTileIntegers(const float* x, std::size_t first, std::size_t last, std::size_t tokens, const TileLayout& layout,
                      std::byte* out) {
  for (std::size_t b = 0; b < layout.blocks(); ++b) {
    const std::size_t columns = layout.columns_of(b);
    const std::size_t count = std::min(columns, layout.columns - b * kTileBlock);
    for (std::size_t t = first; t < last; ++t) {
      alignas(64) std::int8_t upper[kTileBlock];
      alignas(64) std::int8_t lower[kTileBlock];
      const RoundedStep rounded = RoundStep<true>(x + t * layout.columns + b * kTileBlock, count, upper, lower);
      std::fill(upper + count, upper + columns, std::int8_t{0});
      std::fill(lower + count, lower + columns, std::int8_t{0});
      std::byte* const group = out + layout.place(t / kTileTokens, b, tokens);
      const std::size_t row = t % kTileTokens;
      SpreadRows(upper, columns, group + row * kTileBytes);
      SpreadRows(lower, columns, group + columns * kTileTokens + row * kTileBytes);
      auto& factors = *reinterpret_cast<CodeFactors*>(group + layout.number_bytes(b));
      factors.starts[row] = -layout.taken * rounded.sum;
      factors.scales[row] = rounded.scale;
      factors.sums[row] = rounded.scale * static_cast<float>(rounded.sum);
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

void take_tile_parts(const float* x, std::size_t first, std::size_t last, std::size_t tokens, const TileLayout& layout,
                     std::byte* out) {
  alignas(64) float numbers[kTileBlock];
  alignas(64) std::uint16_t parts[kMostTileParts][kTileBlock];
  std::uint16_t* const places[kMostTileParts] = {parts[0], parts[1], parts[2]};
  for (std::size_t b = 0; b < layout.blocks(); ++b) {
    const std::size_t columns = layout.columns_of(b);
    const std::size_t count = std::min(columns, layout.columns - b * kTileBlock);
    for (std::size_t t = first; t < last; ++t) {
      const float* from = x + t * layout.columns + b * kTileBlock;
      if (count < columns) {
        std::copy_n(from, count, numbers);
        std::fill(numbers + count, numbers + columns, 0.0F);
        from = numbers;
      }
      split_floats(from, columns, std::span(places).first(layout.parts));
      std::byte* const row = out + layout.place(t / kTileTokens, b, tokens) + t % kTileTokens * kTileBytes;
      for (std::size_t p = 0; p < layout.parts; ++p) {
        for (std::size_t i = 0; i < columns; i += kTileColumns)
          std::memcpy(row + 2 * kTileTokens * (p * columns + i), parts[p] + i, kTileBytes);
      }
    }
  }
}

}  // namespace

void take_tile_numbers(const float* x, std::size_t first, std::size_t last, std::size_t tokens,
                       const TileLayout& layout, std::byte* out) {
  if (layout.parts == 0) return HWY_DYNAMIC_DISPATCH(TakeTileIntegers)(x, first, last, tokens, layout, out);
  take_tile_parts(x, first, last, tokens, layout, out);
}

}  // namespace poise
#endif
