// The metadata of a GGUF file, key by key.
#pragma once

#include <vector>

#include "formats/format.hpp"

namespace poise::gguf {

// Of one file: each part of a split model has its own. Throws what reading a header throws.
std::vector<MetadataKey> list_keys(const Input& input);

}  // namespace poise::gguf
