// The families that Poise knows, and which of them a model is of.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "family/family.hpp"

namespace poise {

std::span<const Family* const> families();

// The family of that model_type; nullptr for one that Poise does not know.
const Family* find_family(std::string_view model_type);

// The same, and Llama, whose names and keys most architectures share, where the type says nothing or is not known.
const Family& family_of(std::string_view model_type);
inline const Family& family_of(const Model& model) { return family_of(model.card.model_type); }

// What its configuration says, as the family reads it: without `nested`, all of config.json. Requires: it has one.
ConfigView config_view(const Model& model);
// The object of config.json that has the family's keys.
const Attributes& family_keys(const Family& family, const Attributes& config_json);

// The tensor of a name in the family's table, however it is spelled; nullptr: none.
const Tensor* find_weight(const Model& model, const Family& family, std::string_view name);
// The table's spelling of a tensor's name; the name itself where the table does not have it.
std::string table_name(const Family& family, std::string_view name);

// The output matrix of a model whose configuration makes the embedding that, too: nothing multiplies with it. Null:
// there is none.
const Tensor* unused_output(const Model& model);
inline constexpr std::string_view kUnusedOutput = "tie_word_embeddings makes it the embedding";

// Which of its family's forms a model's weights have: 0 for the first, and one more than the place in Family::forms for
// others.
std::size_t form_of(const Model& model, const Family& family);
// Family::reformed() of the model's family. Nothing where that has one form.
std::optional<Reformed> reformed(const Model& model, WeightReader reader, bool numbers);

// "mistral, llama and tiny_llama": all of them, for messages.
std::string known_model_types();

}  // namespace poise
