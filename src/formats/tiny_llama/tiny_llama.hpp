// The Tiny Llama weight file (.tllm): a header of seven numbers and float32 arrays.
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kTinyLlamaFormat;

}  // namespace poise
