// The tokens that end a text.
#pragma once

#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

// The attribute that holds a Hugging Face directory's generation_config.json.
inline constexpr std::string_view kGenerationConfig = "generation_config";

// `eos`, the vocabulary's (-1: none), eos_token_id of config.json and generation_config.json (a number or a list), and
// GGUF's ends of a turn and of a message: each once, if below `tokens`.
std::vector<TokenId> end_tokens(const Model& model, TokenId eos, std::size_t tokens);

// generation_config.json, stored in the model as a map or as text; else empty.
Attributes generation_config(const Model& model);

// The keys "general.sampling.*" of a GGUF file in the form of a generation_config.json; empty if it has none.
Attributes make_generation_config(const Attributes& attributes);

}  // namespace poise
