// MXFP4, as the published directories of gpt-oss store their experts.
#pragma once

#include <poise/model.hpp>

namespace poise {

inline constexpr std::string_view kMxfp4Blocks = "_blocks";
inline constexpr std::string_view kMxfp4Scales = "_scales";
inline constexpr std::string_view kMxfp4Method = "mxfp4";

// Codes [experts, rows, columns / 32, 16] and scales [experts, rows, columns / 32], both bytes, as one tensor of MX
// numbers [experts, rows, columns], of the bytes that are there. Throws invalid_file (without path) where shapes or
// types do not fit each other.
Tensor joined_mx(const Tensor& blocks, const Tensor& scales);

// The quantization_config of directories with such experts.
Attributes mxfp4_config();

}  // namespace poise
