// The experts of gpt-oss in three forms:
//
//   numbers   experts.gate_up_proj [experts, in, 2 * inner], the numbers of gate and up by turns, and experts.down_proj
//             [experts, inner, out]: as transformers computes with them
//   packed    MXFP4: experts.gate_up_proj_blocks [experts, 2 * inner, in / 32, 16] and ..._scales [experts, 2 * inner,
//             in / 32], both bytes, the rows of gate and up by turns; and the same of down_proj: as the published
//             directories have them
//   separate  experts.7.gate_proj.weight [inner, in], up_proj, down_proj [out, inner]: as llama.cpp has them, stacked
//
// Biases of the first two are experts.gate_up_proj_bias [experts, 2 * inner] and down_proj_bias [experts, out], of the
// last experts.7.gate_proj.bias, ...
#pragma once

#include <optional>

#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

enum class GptOssForm : std::size_t { numbers, packed, separate };  // ConfigView::form

// Family::reformed() of gpt-oss. llama.cpp needs them separate, transformers as numbers or packed.
std::optional<Reformed> reformed_gpt_oss(const Model& model, WeightReader reader, bool numbers);

}  // namespace poise
