// hash over several ranks.
#pragma once

#include <poise/hash.hpp>

#include "cluster/communicator.hpp"

namespace poise {

// Hashes a model on all ranks: each reads its share of the bytes. Returns the same on each rank. Throws what hash()
// throws, on the rank that finds it. Requires: all ranks have the same headers.
ModelHash hash(const Model& model, const Progress& progress, Communicator& ranks);

}  // namespace poise
