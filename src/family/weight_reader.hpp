// WeightReader: who reads weights that a family can store in several ways.
#pragma once

#include <cstdint>

namespace poise {

enum class WeightReader : std::uint8_t { any, transformers, llama_cpp };

}  // namespace poise
