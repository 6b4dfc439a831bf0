// What is computed between stored weights and tiles (tiles.hpp), and between tiles and sums, in vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/code_panel.hpp"
#include "kernels/tile_layout.hpp"

namespace poise {

// Codes of an expanded part of rows, times their scales, rounded to bfloat16: out [part.count / 2, kTileRows, 2].
// Where they are half way, they are rounded away from zero. NaN stays NaN.
void round_codes(const CodePart& part, const CodeForm& form, std::uint16_t* out);

inline constexpr std::size_t kPairedRows = 16;

// Turns kPairedRows rows of bfloat16 numbers, which are `stride` numbers apart, into half of the rows of out [columns /
// 2, kTileRows, 2]. Requires: `columns` is a multiple of kTileColumns.
void put_pairs(const std::uint16_t* rows, std::size_t stride, std::size_t columns, std::uint16_t* out);

// Adds what sums of codes and integers of tokens come to, without the weights' scale: to sums [tokens, kTileRows].
void add_code_sums(const std::int32_t* upper, const std::int32_t* lower, const CodeFactors& factors, std::size_t tokens,
                   float* sums);

}  // namespace poise
