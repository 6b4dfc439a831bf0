// Compares the models of several ranks.
#pragma once

#include <string>

#include <poise/model.hpp>

#include "cluster/communicator.hpp"

namespace poise {

// Throws invalid_file on all ranks when one has another model: other headers or another vocabulary.
void require_same_headers(const Model& model, Communicator& ranks);

// Returns a text with everything about a part except its bytes.
std::string describe_part(const Tensor& tensor, const Part& part);

}  // namespace poise
