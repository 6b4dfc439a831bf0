// Checkpoints of PyTorch (docs/formats/pytorch.md): no code of a file is ever run.
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kPytorch;

}  // namespace poise
