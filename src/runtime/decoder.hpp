// The decoder that runs every family: it does what its plan says.
#pragma once

#include <memory>

#include <poise/model.hpp>

#include "family/decoder_plan.hpp"
#include "runtime/transformer.hpp"

namespace poise {

// Requires: the plan is of the model's family, and configuration and tensors have been checked.
std::unique_ptr<const Transformer> make_decoder(const Model& model, DecoderPlan plan);

}  // namespace poise
