// The keys of a Hugging Face directory's files: "config.json: hidden_size", and those of the first weights' metadata.
#pragma once

#include <vector>

#include "formats/format.hpp"

namespace poise::huggingface {

// Requires: the directory has been read. Throws what reading its files throws.
std::vector<MetadataKey> list_keys(const Input& input);

}  // namespace poise::huggingface
