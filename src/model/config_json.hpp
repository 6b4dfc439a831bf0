// Hyperparameters from config.json's keys, with each family's documented defaults (docs/formats/huggingface.md).
#pragma once

#include <string>

#include <poise/model.hpp>

namespace poise {

// `model_type` is filled in when the map has one. Throws invalid_file naming the key when a value is missing or has the
// wrong type, unsupported when rotary embeddings are scaled, which a Config cannot say. `path` stands in errors.
Config config_from_attributes(const Attributes& map, std::string& model_type, const std::string& path);

// Throws unsupported when a config.json asks for what Poise does not do: biases, another activation than silu.
void refuse_what_is_not_done(const Attributes& map, const std::string& path);

}  // namespace poise
