// Which types llama.cpp wants the keys of its own metadata to have, for those that a file gets anew. Source:
// src/llama-arch.cpp and src/llama-model.cpp of llama.cpp v0.5.0, which loads no file where a key has another one.
#pragma once

#include <optional>
#include <string_view>

#include "formats/gguf/header.hpp"

namespace poise::gguf {

// Of a hyperparameter, by what comes after the architecture's name and its dot; nothing where none is known.
std::optional<ValueType> hyperparameter_type(std::string_view name);

// Of a key of the vocabulary, by what comes after "tokenizer.ggml.".
std::optional<ValueType> vocabulary_key_type(std::string_view name);

}  // namespace poise::gguf
