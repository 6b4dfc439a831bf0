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
#include <string_view>

#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

enum class GptOssForm : std::size_t { numbers, packed, separate };  // ConfigView::form

inline constexpr std::string_view kGptOssBlocks = "_blocks";
inline constexpr std::string_view kGptOssScales = "_scales";

// Codes and scales as one tensor of MX numbers [experts, rows, columns], of the bytes that are there. Throws
// invalid_file (without path) where shapes or types do not fit each other.
Tensor joined_mx(const Tensor& blocks, const Tensor& scales);

// Family::reformed() of gpt-oss. llama.cpp takes them separate, transformers as numbers or packed.
std::optional<Reformed> reformed_gpt_oss(const Model& model, WeightReader reader, bool numbers);

}  // namespace poise
