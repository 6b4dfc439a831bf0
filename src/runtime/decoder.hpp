// The decoder that runs every family by its plan.
#pragma once

#include <memory>

#include <poise/model.hpp>

#include "family/decoder_plan.hpp"
#include "runtime/transformer.hpp"

namespace poise {

// One of several ranks, or the whole model. Throws unsupported for what does not divide among the ranks. Requires: the
// plan of the model's family, and checked configuration and tensors.
std::unique_ptr<const Transformer> make_decoder(const Model& model, const DecoderPlan& plan, const Ranks& ranks);

}  // namespace poise
