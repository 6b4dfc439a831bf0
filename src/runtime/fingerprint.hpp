// A fingerprint of a model: what its tensors and its configuration are, whatever file they come from.
#pragma once

#include <string>
#include <vector>

#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// "xxh3:" and 16 digits, of names, shapes, types and all bytes of the tensors, in any order, and of the configuration.
// Reads them once: about as long as one token takes. It tells models apart by chance, not against somebody who wants
// two to look alike. Throws what reading the blobs throws.
std::string fingerprint(const std::vector<Tensor>& tensors, const Attributes& config);

}  // namespace poise
