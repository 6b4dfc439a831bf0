// Multiplies many tokens by panels of codes, or of weights that are rounded to integers (code_panel.hpp).
#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/code_panel.hpp"
#include "kernels/processor.hpp"
#include "kernels/product_kernels.hpp"
#include "kernels/tiles.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/code_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/integer_sums-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET > HWY_AVX2

void MultiplyPanels(const StoredRows&, std::size_t, std::size_t, const KernelInput::Panels&, float*, std::size_t) {}
void MultiplyRoundedTile(const CodeTile&, std::size_t) {}

#else

// Each lane of a vector belongs to a row. A loaded vector of codes is multiplied by the x of up to kTokensAtOnce
// tokens. The sums of two vectors of rows for these tokens stay in registers.
using Ints = hn::ScalableTag<std::int32_t>;
constexpr std::size_t kLanes = hn::MaxLanes(Ints());
constexpr std::size_t kTwo = 2;         // vectors of rows whose sums stay in registers
constexpr std::size_t kTileLanes = 16;  // rows of weights with sums in one tile
static_assert(kCodeRows == kTileRows && kCodeRows == 2 * kTileLanes && kTileLanes % kLanes == 0 &&
              kTileTokens == 2 * kCodeTokens);
static_assert(kCodeRows % (kTwo * kLanes) == 0);
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kTokensAtOnce = 8;  // their sums take 16 of the 32 registers
#else
constexpr std::size_t kTokensAtOnce = 4;
#endif

// Returns a vector with the four bytes at x in every lane.
HWY_INLINE auto BroadcastFourBytes(const std::byte* x) {
  std::int32_t four = 0;
  std::memcpy(&four, x, sizeof four);
  return hn::Set(Ints(), four);
}

#if POISE_HAVE_VNNI
// AddPairs() adds to each 32-bit sum the products of two neighbouring words, and AddFours() those of four neighbouring
// bytes. (Highway does not use these instructions on all processors that have them.)
HWY_INLINE void AddPairs(hn::Vec<Ints>& sum, __m512i words, __m512i x) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(words), "v"(x));
}
HWY_INLINE void AddFours(hn::Vec<Ints>& sum, __m512i codes, __m512i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(codes), "v"(x));
}
#endif

// Multiplies four codes of a row, or two rounded numbers, and adds the products exactly, in one instruction.
template <bool kRounded>
struct InOne {
  static constexpr std::size_t kBytesOfX = 1;  // bytes of x for each byte of a row

  template <std::size_t kTokens>
  static HWY_INLINE void add(const std::uint8_t* codes, const std::byte* x, std::size_t row_bytes,
                             hn::Vec<Ints> (&sums)[kTokens][kTwo]) {
#if POISE_HAVE_VNNI
    for (std::size_t i = 0; i < row_bytes; i += 4, codes += 4 * kCodeRows, x += 4 * kCodeTokens) {
      const auto first = hn::LoadU(Ints(), reinterpret_cast<const std::int32_t*>(codes));
      const auto second = hn::LoadU(Ints(), reinterpret_cast<const std::int32_t*>(codes) + kLanes);
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kTokens; ++t) {
        const auto four = BroadcastFourBytes(x + 4 * t);
        if constexpr (kRounded) {
          AddPairs(sums[t][0], first.raw, four.raw);
          AddPairs(sums[t][1], second.raw, four.raw);
        } else {
          AddFours(sums[t][0], first.raw, four.raw);
          AddFours(sums[t][1], second.raw, four.raw);
        }
      }
    }
#endif
  }
};

// Multiplies two codes of a row by two words of x, and adds the products exactly, in one instruction.
struct InOneOfWords {
  static constexpr std::size_t kBytesOfX = 2;

  template <std::size_t kTokens>
  static HWY_INLINE void add(const std::uint8_t* codes, const std::byte* x, std::size_t row_bytes,
                             hn::Vec<Ints> (&sums)[kTokens][kTwo]) {
#if POISE_HAVE_VNNI
    const hn::Repartition<std::uint16_t, Ints> words;
    const auto low = hn::Set(words, 0xff);
    for (std::size_t i = 0; i < row_bytes; i += 4, codes += 4 * kCodeRows, x += 8 * kCodeTokens) {
      const auto* const four = reinterpret_cast<const std::uint16_t*>(codes);
      const auto first = hn::LoadU(words, four);
      const auto second = hn::LoadU(words, four + 2 * kLanes);
      const auto even = hn::And(first, low);
      const auto odd = hn::ShiftRight<8>(first);
      const auto next_even = hn::And(second, low);
      const auto next_odd = hn::ShiftRight<8>(second);
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kTokens; ++t) {
        const auto pair = BroadcastFourBytes(x + 4 * t);
        AddPairs(sums[t][0], even.raw, pair.raw);
        AddPairs(sums[t][1], next_even.raw, pair.raw);
      }
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kTokens; ++t) {
        const auto pair = BroadcastFourBytes(x + 4 * (kCodeTokens + t));
        AddPairs(sums[t][0], odd.raw, pair.raw);
        AddPairs(sums[t][1], next_odd.raw, pair.raw);
      }
    }
#endif
  }
};

HWY_INLINE auto MultiplyPairs(hn::Vec<Ints> codes, hn::Vec<Ints> x) {
  using Words16 = hn::Repartition<std::int16_t, Ints>;
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<Words16>{_mm512_maddubs_epi16(codes.raw, x.raw)};
#else
  return hn::Vec<Words16>{_mm256_maddubs_epi16(codes.raw, x.raw)};
#endif
}

// Multiplies without VNNI. An instruction adds two products in 16 bits, which hold the sum of kFours such pairs.
template <std::size_t kFours>
struct InPairs {
  static constexpr std::size_t kBytesOfX = 1;

  template <std::size_t kTokens>
  static HWY_INLINE void add(const std::uint8_t* codes, const std::byte* x, std::size_t columns,
                             hn::Vec<Ints> (&sums)[kTokens][kTwo]) {
    const hn::Repartition<std::int16_t, Ints> words;
    const auto one = hn::Set(words, 1);
    for (std::size_t i = 0; i < columns; i += 4 * kFours) {
      HWY_UNROLL(8)
      for (std::size_t t = 0; t < kTokens; ++t) {
        auto first = hn::Zero(words);
        auto second = first;
        HWY_UNROLL(4)
        for (std::size_t k = 0; k < kFours; ++k) {
          const auto* const at = reinterpret_cast<const std::int32_t*>(codes + 4 * k * kCodeRows);
          const auto four = BroadcastFourBytes(x + 4 * (k * kCodeTokens + t));
          first = hn::Add(first, MultiplyPairs(hn::LoadU(Ints(), at), four));
          second = hn::Add(second, MultiplyPairs(hn::LoadU(Ints(), at + kLanes), four));
        }
        sums[t][0] = add_pairs(sums[t][0], first, one);
        sums[t][1] = add_pairs(sums[t][1], second, one);
      }
      codes += 4 * kFours * kCodeRows;
      x += 4 * kFours * kCodeTokens;
    }
  }

 private:
  template <class V>
  static HWY_INLINE hn::Vec<Ints> add_pairs(hn::Vec<Ints> sum, V pairs, V one) {
    auto none = hn::Zero(Ints());
    return hn::ReorderWidenMulAccumulate(Ints(), pairs, one, sum, none);
  }
};

// Returns `sum` plus the products of a step of a token, times the scales of the weights and of x. With kMins, also adds
// the minimums times the sum of x. `factors` points to the token's numbers after the integers
// (CodeLayout::count_step_bytes()).
template <bool kMins>
HWY_INLINE auto AddStep(hn::Vec<Ints> products, hn::Vec<Floats> scale, const float* mins, const std::byte* factors,
                        hn::Vec<Floats> sum) {
  const auto number = [&](std::size_t at) HWY_ATTR {
    float one = 0;
    std::memcpy(&one, factors + 4 * at * kCodeTokens, sizeof one);
    return hn::Set(Floats(), one);
  };
  sum = hn::MulAdd(hn::ConvertTo(Floats(), products), hn::Mul(scale, number(1)), sum);
  if constexpr (kMins) sum = hn::MulAdd(Load(mins), number(2), sum);
  return sum;
}

template <class How, bool kMins, std::size_t kTokens>
HWY_INLINE void MultiplyCodeTile(const CodeTile& tile) {
  const std::size_t integer_bytes = How::kBytesOfX * tile.row_bytes * kCodeTokens;
  const std::uint8_t* codes = tile.codes;
  const std::byte* x = tile.x;
  for (std::size_t s = 0; s < tile.steps; ++s) {
    hn::Vec<Ints> sums[kTokens][kTwo];
    const std::byte* factors = x + integer_bytes;
    HWY_UNROLL(8)
    for (std::size_t t = 0; t < kTokens; ++t) sums[t][0] = sums[t][1] = BroadcastFourBytes(factors + 4 * t);
    How::add(codes, x, tile.row_bytes, sums);
    const float* const scales = tile.scales + s * kCodeRows;
    const float* const mins = tile.mins + s * kCodeRows;
    const hn::Vec<Floats> scale[kTwo] = {Load(scales), Load(scales + kLanes)};
    HWY_UNROLL(8)
    for (std::size_t t = 0; t < kTokens; ++t) {
      float* const to = tile.sums + t * tile.stride;
      for (std::size_t v = 0; v < kTwo; ++v) {
        const auto sum =
            AddStep<kMins>(sums[t][v], scale[v], mins + v * kLanes, factors + 4 * t, Load(to + v * kLanes));
        hn::StoreU(sum, Floats(), to + v * kLanes);
      }
    }
    codes += tile.row_bytes * kCodeRows;
    x += tile.step_bytes;
  }
}

// Multiplies all rows of a panel by the first `tokens` tokens of a group.
template <class How, bool kMins>
void MultiplyCodeGroup(CodeTile tile, std::size_t tokens) {
  for (std::size_t v = 0; v < kCodeRows; v += kTwo * kLanes) {
    for (std::size_t t = 0; t < tokens; t += kTokensAtOnce) {
      CodeTile part = tile;
      part.codes += 4 * v;
      part.scales += v;
      part.mins += v;
      part.x += 4 * t;
      part.sums += t * tile.stride + v;
      const std::size_t rest = tokens - t;
      if (rest <= 2) {
        MultiplyCodeTile<How, kMins, 2>(part);
      } else if (rest <= 4 || kTokensAtOnce == 4) {
        MultiplyCodeTile<How, kMins, 4>(part);
      } else if (rest <= 6) {
        MultiplyCodeTile<How, kMins, std::min<std::size_t>(6, kTokensAtOnce)>(part);
      } else {
        MultiplyCodeTile<How, kMins, kTokensAtOnce>(part);
      }
    }
  }
}

// Multiplies all rows of a panel by the first `tokens` tokens of a group, whose x has 15 bits. A matrix unit computes
// the sums of products, for two steps at a time.
template <bool kMins>
void MultiplyTiledGroup(CodeTile tile, std::size_t tokens) {
  constexpr std::size_t kOfStep = 2 * kTileTokens * kTileLanes;
  alignas(64) std::int32_t products[2 * kOfStep];
  for (std::size_t s = 0; s < tile.steps; ++s) {
    const std::int32_t* const of_step = products + s % 2 * kOfStep;
    if (s % 2 == 0)
      multiply_panel_tiles({tile.codes + s * tile.row_bytes * kCodeRows, reinterpret_cast<const std::int8_t*>(tile.x),
                            tile.row_bytes, s + 1 < tile.steps ? tile.step_bytes : 0},
                           products);
    const std::byte* const factors = tile.x + kTileTokens * tile.row_bytes;
    for (std::size_t v = 0; v < kCodeRows; v += kLanes) {
      const std::int32_t* upper = of_step + v / kTileLanes * kTileTokens * kTileLanes + v % kTileLanes;
      const auto scale = Load(tile.scales + s * kCodeRows + v);
      float* to = tile.sums + v;
      for (std::size_t t = 0; t < tokens; ++t, upper += kTileLanes, to += kCodeRows) {
        const auto lower = hn::LoadU(Ints(), upper + kCodeTokens * kTileLanes);
        // 32 bits hold the sum of all three. A partial sum that overflows wraps around, so the sum is still right.
        const auto sum =
            hn::Add(hn::Add(hn::ShiftLeft<8>(hn::LoadU(Ints(), upper)), lower), BroadcastFourBytes(factors + 4 * t));
        hn::StoreU(AddStep<kMins>(sum, scale, tile.mins + s * kCodeRows + v, factors + 4 * t, Load(to)), Floats(), to);
      }
    }
    tile.x += tile.step_bytes;
  }
}

using MultiplyGroup = void (*)(CodeTile tile, std::size_t tokens);

template <class How>
MultiplyGroup ChooseByMins(bool has_mins) {
  return has_mins ? MultiplyCodeGroup<How, true> : MultiplyCodeGroup<How, false>;
}

MultiplyGroup ChooseGroup(const CodeForm& form, const CodeLayout& layout) {
  if (layout.tiled) return form.has_mins ? MultiplyTiledGroup<true> : MultiplyTiledGroup<false>;
#if POISE_HAVE_VNNI
  if (layout.integers == PanelIntegers::rounded) return MultiplyCodeGroup<InOne<true>, false>;
  if (layout.integers == PanelIntegers::words) return ChooseByMins<InOneOfWords>(form.has_mins);
  if (has_vnni()) return ChooseByMins<InOne<false> >(form.has_mins);
#endif
  // 16 bits hold the sum of 32767 / (2 * 127 * largest) pairs of products.
  if (form.largest <= 32) return ChooseByMins<InPairs<4> >(form.has_mins);
  if (form.largest <= 64) return ChooseByMins<InPairs<2> >(form.has_mins);
  return ChooseByMins<InPairs<1> >(form.has_mins);
}

void MultiplyRoundedTile(const CodeTile& tile, std::size_t tokens) {
#if POISE_HAVE_VNNI
  MultiplyCodeGroup<InOne<true>, false>(tile, tokens);
#endif
}

// Holds a panel, and the sums of its rows for whole groups of tokens, [tokens, kCodeRows]. Each thread has one object,
// and reuses its memory.
struct PanelOfCodes {
  static PanelOfCodes& get_of_thread() {
    thread_local PanelOfCodes panel;
    return panel;
  }

  AlignedVector<std::uint8_t> codes = AlignedVector<std::uint8_t>(kCodeRows * kCodeBlock);
  AlignedFloats scales = AlignedFloats(kCodeRows * kCodeBlock / kLeastStep);
  AlignedFloats mins = AlignedFloats(kCodeRows * kCodeBlock / kLeastStep);
  AlignedFloats sums;
};

void MultiplyPanels(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Panels& in,
                    float* y, std::size_t stride) {
  PanelOfCodes& panel = PanelOfCodes::get_of_thread();
  const CodeForm& form = find_stored_type(matrix).kernels().panels;
  const CodeLayout& layout = in.layout;
  const MultiplyGroup multiply = ChooseGroup(form, layout);
  const std::size_t tokens = in.tokens;
  const std::size_t groups = layout.count_groups(tokens);
  const std::size_t needed = groups * kCodeTokens * kCodeRows;
  if (panel.sums.size() < needed) panel.sums.resize(needed);
  for (std::size_t r = first; r < last; r += kCodeRows) {
    const std::size_t end = std::min(r + kCodeRows, last);
    std::fill_n(panel.sums.begin(), needed, 0.0F);
    for (std::size_t b = 0; b < layout.blocks(); ++b) {
      const std::size_t steps = layout.count_steps(b);
      form.expand(matrix, {r, end, b * layout.block_columns(), steps * layout.step, layout.step, panel.codes.data(),
                           panel.scales.data(), panel.mins.data(), 0, layout.tiled ? &keep_tiles_awake : nullptr});
      for (std::size_t g = 0; g < groups; ++g) {
        multiply({panel.codes.data(), panel.scales.data(), panel.mins.data(), in.get_group(g, b), steps,
                  layout.count_row_bytes(), layout.count_step_bytes(), panel.sums.data() + g * kCodeTokens * kCodeRows},
                 std::min(kCodeTokens, tokens - g * kCodeTokens));
      }
    }
    for (std::size_t t = 0; t < tokens; ++t)
      std::copy_n(panel.sums.data() + t * kCodeRows, end - r, y + t * stride + (r - first));
  }
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(MultiplyPanels);
HWY_EXPORT(MultiplyRoundedTile);

void multiply_code_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Panels& x,
                        float* y, std::size_t stride) {
  std::optional<TileScope> tiles;
  if (x.layout.tiled) tiles.emplace();
  HWY_DYNAMIC_DISPATCH(MultiplyPanels)(matrix, first, last, x, y, stride);
}

bool can_multiply_rounded_panels() { return has_vnni() && get_f16_kernels().panels.integers == PanelIntegers::rounded; }

void multiply_rounded_tile(const CodeTile& tile, std::size_t tokens) {
  HWY_DYNAMIC_DISPATCH(MultiplyRoundedTile)(tile, tokens);
}

namespace {

// Returns the largest number of columns that may share a scale of x in panels for vectors.
std::size_t find_most_step(PanelIntegers integers) {
  switch (integers) {
    case PanelIntegers::bytes: return KernelInput::kByteBlock;
    case PanelIntegers::words: return kMostStep;
    case PanelIntegers::rounded: return kMostRoundedStep;
  }
  return kLeastStep;
}

}  // namespace

std::size_t find_panel_step(const StoredRows& matrix, std::size_t most) {
  const CodeForm& form = find_stored_type(matrix).kernels().panels;
  if (form.expand == nullptr || matrix.columns % form.elements != 0) return 0;
  const std::size_t shared = form.group != 0 ? form.group : matrix.group_size != 0 ? matrix.group_size : matrix.columns;
  for (std::size_t step = most; step >= kLeastStep; step /= 2) {
    if (shared % step == 0 && matrix.columns % step == 0) return step;
  }
  return 0;
}

CodeLayout make_code_layout(const StoredRows& matrix) {
  const CodeForm& form = find_stored_type(matrix).kernels().panels;
  // Codes of 8 bits are not faster on a matrix unit, because most of the time goes into reading them.
  if (form.integers == PanelIntegers::words && get_tile_unit() != TileUnit::none &&
      find_stored_type(matrix).bits == 4) {
    const std::size_t step = find_panel_step(matrix, kMostTiledStep);
    if (step > 0 && step % kTileBytes == 0)
      return {matrix.columns, step, form.offset, PanelIntegers::words, /*tiled=*/true};
  }
  if (form.integers == PanelIntegers::rounded &&
      (get_tile_unit() != TileUnit::none || matrix.columns < kLeastRoundedColumns))
    return {};
  // Rounding x to 7 bits loses less than rounding the weights to codes of four bits did.
  const PanelIntegers integers =
      form.integers == PanelIntegers::words && form.largest <= 15 ? PanelIntegers::bytes : form.integers;
  const bool in_one = form.vnni && has_vnni();
  constexpr unsigned kLargestInPairs = 129;  // 2 * 127 * 129 fits 15 bits
  if (!in_one && (integers != PanelIntegers::bytes || form.largest > kLargestInPairs)) return {};
  const std::size_t step = find_panel_step(matrix, find_most_step(integers));
  if (step == 0) return {};
  return {matrix.columns, step, form.offset, integers};
}

}  // namespace poise
#endif
