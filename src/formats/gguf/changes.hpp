// What llama.cpp's conversion does to tensors, and the way back: views, so that no bytes move before they are wanted.
#pragma once

#include <cstdint>
#include <optional>

#include <poise/tensor.hpp>

#include "formats/gguf/architectures.hpp"

namespace poise::gguf {

// Of which a model's rotating matrices consist. 0: not known.
struct Heads {
  std::uint64_t queries = 0;
  std::uint64_t keys = 0;
};

// A tensor as llama.cpp has it, put back. Nothing where its type or shape do not let it be: it is no such tensor, and
// stays what it is. Throws invalid_file (without path) for rows that are not those heads. Of stacked tensors these are
// the parts.
std::optional<Tensor> to_canonical(Tensor tensor, Change change, const Heads& heads);

// The tensor of llama.cpp for one of transformers. Throws unsupported where that cannot be made. Requires: the tensor
// is dense, or blocks.
Tensor to_gguf(Tensor tensor, Change change, const Heads& heads);

}  // namespace poise::gguf
