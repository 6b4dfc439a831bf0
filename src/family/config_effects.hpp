// Keys of config.json that are known to change what a model computes, and that its family does not follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// One sentence for each such key whose value is not the harmless one: "partial_rotary_factor is 0.5, only 1 is
// supported". Empty for a model whose configuration Poise follows to the letter.
std::vector<std::string> effects_not_followed(const Model& model);

// The same for the keys beside the hyperparameters of Config: what a format that holds no other keys would lose.
std::vector<std::string> effects_beside_config(const Model& model);

// The sentence for a text model, described in an object of its own, that is another than the family's.
std::optional<std::string> other_text_model(const Model& model);

// Does one of these keys change which tensors there are, so that Config does not describe them?
bool has_other_tensors(const Model& model);

// Does the family's own table have the tensors that matrices are stored as by the scheme of quantization_config?
bool follows_quantization(const Model& model);

}  // namespace poise
