// The decoder that runs every family by its plan.
#pragma once

#include <memory>

#include <poise/model.hpp>

#include "family/decoder_plan.hpp"
#include "runtime/transformer.hpp"

namespace poise {

// Requires: the plan of the model's family, and checked configuration and tensors.
std::unique_ptr<const Transformer> make_decoder(const Model& model, DecoderPlan plan);

}  // namespace poise
