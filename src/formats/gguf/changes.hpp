// Makes llama.cpp's changes to tensors, and undoes them, as lazy views.
#pragma once

#include <cstdint>
#include <optional>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

#include "formats/gguf/architectures.hpp"

namespace poise::gguf {

// Holds the numbers of heads in a model's rotated matrices. 0: unknown.
struct Heads {
  std::uint64_t queries = 0;
  std::uint64_t keys = 0;
};

// Undoes llama.cpp's change of a tensor; leaves stacked tensors as they are. Returns std::nullopt if type or shape do
// not allow it. Throws invalid_file (without path) if rows must be reordered, but the number of heads is unknown or the
// rows do not divide into heads of an even number of rows.
std::optional<Tensor> undo_change(Tensor tensor, Change change, const Heads& heads);

// Makes llama.cpp's tensor from one of transformers; leaves experts as they are. Throws unsupported if type, shape or
// heads do not allow it. Requires: the tensor is dense or consists of blocks.
Tensor apply_change(Tensor tensor, Change change, const Heads& heads);

// Names the direction in which numbers change by 1.
enum class UnitShift : std::uint8_t { added, taken_away };

// Returns the float32 numbers plus or minus 1, computed when they are read. llama.cpp stores the norms of Gemma as 1 +
// weight, by which Gemma multiplies. Sums are float32. (w + 1) - 1 is w if float32 holds 1 + w exactly: for example,
// for every bfloat16 w between 2^-16 and 2^24. Other numbers may lose their lowest bits. A blob of numbers minus 1
// keeps the original as stored_as(), so that the way back is exact. Requires: the blob is whole float32 numbers.
BlobPtr shift_by_one(BlobPtr floats, UnitShift shift);

}  // namespace poise::gguf
