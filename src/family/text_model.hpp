// text_model: what llama.cpp has of a model: the text model alone, with the names that its family's table has.
#pragma once

#include <optional>

#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

// Family::reformed() of families with weights of one form. Of a configuration with a text_config the text model's own
// stays, and the other tensors are lost; names that begin otherwise than in the table begin as there. Nothing for other
// readers, or where that is so already.
std::optional<Reformed> text_model(const Model& model, WeightReader reader, bool numbers);

}  // namespace poise
