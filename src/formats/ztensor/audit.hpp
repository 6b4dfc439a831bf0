// What verify looks for in zTensor files beyond the tensors: bytes that belong to nothing, and what this version does
// not know.
#pragma once

#include "formats/format.hpp"

namespace poise::ztensor {

std::vector<Finding> audit_version_1(const Input& input, const Model& model);
std::vector<Finding> audit_version_2(const Input& input, const Model& model);

}  // namespace poise::ztensor
