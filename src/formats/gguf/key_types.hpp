// The types that llama.cpp requires of its metadata keys, for new keys. Source: src/llama-arch.cpp and
// src/llama-model.cpp of llama.cpp v0.5.0, which rejects files with other types.
#pragma once

#include <optional>
#include <string_view>

#include "formats/gguf/key_values.hpp"

namespace poise::gguf {

// For a hyperparameter, by the name after the architecture's and its dot; nothing if unknown.
std::optional<EntryType> hyperparameter_type(std::string_view name);

// For a key by the name after "general.".
std::optional<EntryType> general_key_type(std::string_view name);

// For a key of the vocabulary, by the name after "tokenizer.ggml.".
std::optional<EntryType> vocabulary_key_type(std::string_view name);

}  // namespace poise::gguf
