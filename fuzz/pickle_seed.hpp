// Checkpoints of PyTorch of a few numbers, with what training stores besides tensors.
#pragma once

#include <string>
#include <string_view>

namespace poise::fuzz {

// Bytes of its only storage, "0".
inline constexpr unsigned kPickledBytes = 24;

// The objects: a dict with a state dict - a transposed matrix in a Parameter - and values. `storage` is the class in
// torch of the storage: FloatStorage, HalfStorage or ByteStorage.
std::string pickle_seed(std::string_view storage);

// A file from before version 1.6 with these objects.
std::string legacy_checkpoint_seed(std::string_view storage);

}  // namespace poise::fuzz
