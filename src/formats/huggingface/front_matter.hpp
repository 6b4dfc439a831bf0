// The YAML front matter of a model card: the part of YAML that model cards use.
#pragma once

#include <string>
#include <string_view>

namespace poise {

// The value of a top-level key between the two "---" lines of a README: a plain or quoted scalar, the text of a block,
// or the first item of a list. Empty when there is none, or null.
std::string front_matter_value(std::string_view readme, std::string_view key);

}  // namespace poise
