// Which names a macro's body uses: "caller", "kwargs" and "varargs" are parameters of macros that use them.
#pragma once

#include <string_view>

#include "jinja/syntax_tree.hpp"

namespace poise::jinja {

bool uses(const Statement& macro, std::string_view name);

}  // namespace poise::jinja
