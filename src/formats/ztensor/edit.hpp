// Edits the root attributes of zTensor files in place.
#pragma once

#include <memory>

#include <poise/edit.hpp>

#include "formats/format.hpp"

namespace poise::ztensor {

std::unique_ptr<PreparedEdit> edit_version_1(const Input& input, const AttributeChanges& changes);
std::unique_ptr<PreparedEdit> edit_version_2(const Input& input, const AttributeChanges& changes);

}  // namespace poise::ztensor
