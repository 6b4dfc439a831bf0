// What is computed between stored weights and tiles (tiles.hpp), and between tiles and sums, in vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/code_panel.hpp"
#include "kernels/tile_layout.hpp"

namespace poise {

// Codes of a part of rows, times their scales, rounded to bfloat16: out [kTileRows, stride]. NaN stays NaN, and an
// infinite scale makes its numbers NaN. Expands the part, whose codes, scales and mins are working memory.
// A count that is a multiple of 16 only is rounded up; codes and scales are read as far, whatever they are.
void round_codes(const StoredRows& matrix, const CodePart& part, const CodeForm& form, std::uint16_t* out,
                 std::size_t stride);

// Turns the words of four bytes of kTileTokens tokens, which are `stride` bytes apart, into out [words, kTileTokens].
// Requires: `words` is a multiple of 16.
void put_tile_words(const void* tokens, std::size_t stride, std::size_t words, void* out);

// Puts two rows of bfloat16 numbers side by side: the i-th kTileTokens of both go to out + i * step. Requires: `count`
// is a multiple of kTileTokens.
void put_tile_pairs(const std::uint16_t* first, const std::uint16_t* second, std::size_t count, std::uint16_t* out,
                    std::size_t step);

// Adds what sums of codes and integers of tokens come to, without the weights' scale: to sums [kTileRows, kTileTokens],
// or to zero.
void add_code_sums(const std::int32_t* upper, const std::int32_t* lower, const CodeFactors& factors, bool is_first,
                   float* sums);

// sums [kTileRows, kTileTokens] = scale * sums + added [kTileTokens]
void scale_sums(float scale, const float* added, float* sums);

// Stores y[t * stride + r] = sums [kTileRows, kTileTokens] of row r and token t, for `rows` and `tokens` of them.
void put_sums(const float* sums, std::size_t rows, std::size_t tokens, float* y, std::size_t stride);

}  // namespace poise
