// Weights of llama2.c, with its tokenizer.bin (docs/formats/llama2c.md).
#pragma once

#include "formats/format.hpp"

namespace poise {

extern const Format kLlama2c;

}  // namespace poise
