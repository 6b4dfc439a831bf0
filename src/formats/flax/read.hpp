// Reads what flax.serialization.to_bytes() writes: one MessagePack item, nested maps with arrays in them.
#pragma once

#include "formats/format.hpp"

namespace poise::flax {

// True for a map with an array among its first items.
bool is_flax(const Input& input);

Model read(const Input& input, const ReadOptions& options);

}  // namespace poise::flax
