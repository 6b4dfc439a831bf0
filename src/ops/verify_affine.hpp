// The part of verify() that concerns codes with one scale per tensor (Layout::affine).
#pragma once

#include <vector>

#include <poise/finding.hpp>
#include <poise/tensor.hpp>

namespace poise {

// Adds what is wrong with the scale (not finite, or negative), with the half of the last byte that holds no code, and with
// codes that do not fit their four bits. Requires: tensor.layout is Layout::affine. Throws what reading the codes throws.
void check_affine(const Tensor& tensor, std::vector<Finding>& faults);

}  // namespace poise
