// The families that Poise knows, and the family of a model.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "family/family.hpp"

namespace poise {

std::span<const Family* const> families();

// The family of that model_type, or nullptr.
const Family* find_family(std::string_view model_type);

// The same; for unknown types Llama, whose names and keys most architectures share.
const Family& family_of(std::string_view model_type);
inline const Family& family_of(const Model& model) { return family_of(model.card.model_type); }

// Its configuration as the family reads it; without `nested`, all of config.json. Requires: the model has one.
ConfigView config_view(const Model& model);
// The object of config.json that has the family's keys.
const Attributes& family_keys(const Family& family, const Attributes& config_json);

// The tensor of a name in the family's table, in any of its spellings; nullptr if missing.
const Tensor* find_weight(const Model& model, const Family& family, std::string_view name);
// The table's spelling of a tensor's name; the name itself if it is not in the table.
std::string table_name(const Family& family, std::string_view name);

// Family::experts_stored() of the model.
ExpertsStored experts_stored(const Model& model, const Family& family);
// Family::reformed() of the model's family. Nothing if the model stays as it is.
std::optional<Reformed> reformed(const Model& model, WeightReader reader, bool numbers);

// "mistral, llama and tiny_llama": all of them, for messages.
std::string known_model_types();

}  // namespace poise
