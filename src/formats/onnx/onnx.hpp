// ONNX models, as far as they hold tensors (docs/formats/onnx.md).
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kOnnx;

}  // namespace poise
