// config.json: hyperparameters from its keys, with each family's documented defaults (docs/formats/huggingface.md), and its other keys.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Is it a model_type whose hyperparameters a Config holds?
bool is_known_family(std::string_view model_type);

// `model_type` is filled in when the map has one. Throws invalid_file naming the key when a value is missing or has the wrong type.
// `path` stands in errors.
Config config_from_attributes(const Attributes& map, std::string& model_type, const std::string& path);

// Gives the model a whole config.json, and what it says: card.model_type and, for a family that is known, config. A configuration
// that names no family is read as a Llama's when it has a hidden_size. Throws what config_from_attributes() throws.
void take_config(Model& model, Attributes map, const std::string& path);

// The hyperparameters in one spelling, defaults included, then config.json's other keys: equal for equal configurations.
Attributes normal_config(const Model& model);

// The keys of config.json that are no hyperparameters of Config, in its order.
std::vector<std::string> other_config_keys(const Model& model);

}  // namespace poise
