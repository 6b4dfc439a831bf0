// TokenDisplay: how a token appears in text, by its type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <poise/model.hpp>

namespace poise {

enum class TokenDisplay : std::uint8_t { invisible, unknown, byte, text };

// For each token. Throws invalid_file for a byte token whose text names no byte.
std::vector<TokenDisplay> token_displays(const Vocabulary& vocabulary);

}  // namespace poise
