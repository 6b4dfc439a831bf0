// MXFP4, as published directories of gpt-oss store their experts: of a stack X [experts, rows, columns]
//
//   X_blocks   u8 [experts, rows, columns / 32, 16], two codes a byte, the even one in the low half
//   X_scales   u8 [experts, rows, columns / 32], the exponents of their scales (E8M0)
//
// The folded tensor X has the layout zt.mx/1 with the same bytes.
#pragma once

#include <poise/model.hpp>

namespace poise {

// The quantization_config of the published directories.
Attributes mxfp4_config();

}  // namespace poise
