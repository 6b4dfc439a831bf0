// What formats of tensors alone lose of a model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// For a format that holds names, shapes and elements only: card, configuration, vocabulary, attributes of the model and
// of its tensors, where there are some; one sentence each. `files` begins them: "an .npz file".
std::vector<std::string> metadata_losses(const Model& model, std::string_view files);

}  // namespace poise
