// Finds keys of config.json that change the computation of a model, and that its family does not implement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Returns one sentence for each such key, unless its value is harmless: "partial_rotary_factor is 0.5, only 1 is
// supported". Begins with the sentence of describe_other_text_model(), if there is one. Empty when Poise implements the
// whole configuration.
std::vector<std::string> list_ignored_effects(const Model& model);

// Returns a sentence, as list_ignored_effects() does, for each key that changes the computation and that Config lacks,
// even if the family implements the key. If there is none, returns a sentence for each key whose harmless value differs
// from the family's default. A format that stores only Config would lose these keys.
std::vector<std::string> list_effects_outside_config(const Model& model);

// Returns a sentence if the nested text model has another type than the family's.
std::optional<std::string> describe_other_text_model(const Model& model);

// Returns true if an ignored key or another text model changes which tensors there are: Config does not describe them.
bool has_other_tensors(const Model& model);

}  // namespace poise
