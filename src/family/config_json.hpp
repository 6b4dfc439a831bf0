// Reads and writes config.json: its hyperparameters, as each family reads them (docs/formats/huggingface.md), and its
// other keys.
//
// config_json.cpp also defines config_to_attributes() and whole_config() of <poise/model.hpp>.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Reads the hyperparameters of a config.json. Sets `model_type` when the map has one. Throws invalid_file naming the
// key when a value is missing or has the wrong type. Errors show `path`.
Config read_config_attributes(const Attributes& map, std::string& model_type, const std::string& path);

// Sets the model's whole config.json and what follows from it: card.model_type and, for a known family or a file that
// Poise wrote, config. A configuration without model_type is read as Llama's when it has a hidden_size. Throws what
// read_config_attributes() throws.
void parse_config(Model& model, Attributes map, const std::string& path);

// Sets the model's family. If its configuration names none, or one that Poise does not know, reads the keys of
// config.json again, with the defaults of the new family. Throws what parse_config() throws.
void set_model_type(Model& model, const std::string& model_type, const std::string& path);

// Changes keys of the model's whole configuration, including those in nested objects that take precedence. Throws what
// parse_config() throws.
void change_config(Model& model, const Attributes& changes, const std::string& path);

// Returns the hyperparameters under canonical names, with defaults, then the other keys as they are, in their order.
Attributes make_canonical_config(const Model& model);

// Returns the keys of config.json, in order, that Config does not have and does not imply.
std::vector<std::string> list_other_config_keys(const Model& model);

}  // namespace poise
