// The experts of gpt-oss:
//
//   stacked_in_out   experts.gate_up_proj [experts, in, 2 * inner], numbers, and experts.down_proj [experts, inner,
//   out]:
//                    as transformers computes with them
//   stacked_out_in   the same matrices as [experts, 2 * inner, in] and [experts, out, inner] in the layout zt.mx/1:
//   what
//                    the scheme MXFP4 makes of the published directories (schemes/mxfp4.hpp)
//   separate         experts.7.gate_proj.weight [inner, in], up_proj, down_proj [out, inner]: as llama.cpp has them
//
// In a stack the outputs of gate and up are interleaved. Its biases are experts.gate_up_proj_bias [experts, 2 * inner]
// and down_proj_bias [experts, out], those of separate experts experts.7.gate_proj.bias, ...
#pragma once

#include <optional>

#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

// Family::experts_stored and Family::reformed of gpt-oss. llama.cpp needs separate experts, transformers stacks.
ExpertsStored gpt_oss_experts(const Model& model);
std::optional<Reformed> reformed_gpt_oss(const Model& model, WeightReader reader, bool numbers);

}  // namespace poise
