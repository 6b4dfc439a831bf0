// Reads weights of llama2.c as a Llama with Hugging Face's names.
#pragma once

#include "formats/format.hpp"

namespace poise::llama2c {

Model read(const Input& input, const ReadOptions& options);

}  // namespace poise::llama2c
