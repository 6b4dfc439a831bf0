// config.json: hyperparameters from its keys, as each family reads them (docs/formats/huggingface.md), and its other
// keys.
//
// config_to_attributes() and whole_config() of <poise/model.hpp> are here, too: families decide which keys there are.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// `model_type` is filled in when the map has one. Throws invalid_file naming the key when a value is missing or has the
// wrong type. Errors show `path`.
Config config_from_attributes(const Attributes& map, std::string& model_type, const std::string& path);

// Gives the model a whole config.json, and what it says: card.model_type and, for a family that is known, config. A
// configuration that names no family is read as a Llama's when it has a hidden_size. Throws what
// config_from_attributes() throws.
void take_config(Model& model, Attributes map, const std::string& path);

// Changes keys of the model's whole configuration, also in the objects where they count more than beside them. Throws
// what take_config() throws.
void change_config(Model& model, const Attributes& changes, const std::string& path);

// The hyperparameters in one spelling, defaults included, then config.json's other keys: equal for equal
// configurations.
Attributes normal_config(const Model& model);

// The keys of config.json that are no hyperparameters of Config and do not follow from them, in its order.
std::vector<std::string> other_config_keys(const Model& model);

}  // namespace poise
