// Surface: how a token appears in text, by its type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <poise/model.hpp>

namespace poise {

enum class Surface : std::uint8_t { invisible, unknown, byte, text };

// Of each token. Throws invalid_file for a byte token whose text names no byte.
std::vector<Surface> surfaces_of(const Vocabulary& vocabulary);

}  // namespace poise
