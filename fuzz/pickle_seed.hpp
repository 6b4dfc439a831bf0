// Checkpoints of PyTorch with a few numbers, and with the values that training stores besides tensors.
#pragma once

#include <string>
#include <string_view>

namespace poise::fuzz {

// Bytes of the only storage, "0".
inline constexpr unsigned kPickledBytes = 24;

// Returns a pickle of a dict with values and a state dict, which has a transposed matrix in a Parameter. `storage` is
// the storage's class in torch: FloatStorage, HalfStorage or ByteStorage.
std::string make_pickle_seed(std::string_view storage);

// Returns a file in the form before version 1.6 with these objects.
std::string make_legacy_checkpoint_seed(std::string_view storage);

}  // namespace poise::fuzz
