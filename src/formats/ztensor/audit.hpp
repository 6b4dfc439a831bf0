// The checks of verify for zTensor files besides the tensors: bytes that belong to nothing, and unknown features.
#pragma once

#include "formats/format.hpp"

namespace poise::ztensor {

std::vector<Finding> audit_version_1(const Input& input, const Model& model);
std::vector<Finding> audit_version_2(const Input& input, const Model& model);

}  // namespace poise::ztensor
