// Numbers plus 1: llama.cpp stores the norms of Gemma so, whose definition multiplies by 1 + weight.
//
// Sums are float32. (w + 1) - 1 is w if w has no bits below those of 1 + w: for example, every bfloat16 number of at
// least 2^-16. Other numbers lose their lowest bits.
#pragma once

#include <poise/blob.hpp>

namespace poise::gguf {

// The direction.
enum class UnitShift : std::uint8_t { added, taken_away };

// The float32 numbers plus or minus 1, computed when read; each direction undoes the other bit by bit. Requires: the
// blob is whole float32 numbers.
BlobPtr plus_one(BlobPtr floats, UnitShift shift);

}  // namespace poise::gguf
