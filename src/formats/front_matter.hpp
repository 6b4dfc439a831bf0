// Model cards: README.md of a directory, and the part of YAML that their front matter uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

inline constexpr std::string_view kModelCard = "README.md";

// Returns the beginning of the model card in the directory that the model was read from, with the front matter. Empty:
// there is none, or it is not UTF-8. Throws io.
std::string read_model_card(const Model& model);

// Returns the values of a top-level key between the two "---" lines of a README: a plain or quoted scalar, the text of
// a block, or the items of a list that are not maps. Empty if the key is missing or null.
std::vector<std::string> find_front_matter_values(std::string_view readme, std::string_view key);

// Returns the first of these values; empty if there are none.
std::string find_front_matter_value(std::string_view readme, std::string_view key);

}  // namespace poise
