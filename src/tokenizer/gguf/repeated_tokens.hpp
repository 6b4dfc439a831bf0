// Tokens that share their text: llama.cpp finds tokens by their texts, and ends at a file where two have the same.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace poise {

// Gives each token whose text an earlier one has an unused name, "[PAD17]"; returns their ids, ascending. llama.cpp
// itself names empty tokens: they stay.
std::vector<std::size_t> name_repeated_tokens(std::vector<std::string>& tokens);

// The sentence about them. Requires: `ids` is not empty.
std::string describe_repeated_tokens(const std::vector<std::size_t>& ids);

}  // namespace poise
