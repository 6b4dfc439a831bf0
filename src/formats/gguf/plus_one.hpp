// Numbers with 1 added: llama.cpp stores the norms of Gemma so, whose definition multiplies by 1 + weight.
//
// Sums are those of float32. (w + 1) - 1 is w where w has no bits below those of 1 + w: for every bfloat16 number of at
// least 2^-16, say. Of others the lowest bits are lost.
#pragma once

#include <poise/blob.hpp>

namespace poise::gguf {

// Which of the two the result is.
enum class One : std::uint8_t { added, taken_away };

// The same float32 numbers with 1 added or taken away, computed when they are read; one undoes the other bit by bit.
// Requires: the blob is whole float32 numbers.
HeldBlob plus_one(HeldBlob floats, One one);

}  // namespace poise::gguf
