// MXFP4, as published directories of gpt-oss store their experts.
#pragma once

#include <poise/model.hpp>

namespace poise {

inline constexpr std::string_view kMxfp4Blocks = "_blocks";
inline constexpr std::string_view kMxfp4Scales = "_scales";
inline constexpr std::string_view kMxfp4Method = "mxfp4";

// Joins codes [experts, rows, columns / 32, 16] and scales [experts, rows, columns / 32], both bytes, into one tensor
// of MX numbers [experts, rows, columns], without copying. Throws invalid_file (without path) for shapes or types that
// do not fit each other.
Tensor joined_mx(const Tensor& blocks, const Tensor& scales);

// The quantization_config of directories with such experts.
Attributes mxfp4_config();

}  // namespace poise
