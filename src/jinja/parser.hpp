// The parser: turns a template's tokens into a tree.
#pragma once

#include <string_view>

#include "jinja/syntax_tree.hpp"

namespace poise::jinja {

// Throws SyntaxFailure. Requires: UTF-8.
Body parse(std::string_view source);

}  // namespace poise::jinja
