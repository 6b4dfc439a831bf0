// Whether the filters and tests of a template exist.
#pragma once

#include "jinja/syntax_tree.hpp"

namespace poise::jinja {

// Throws SyntaxFailure for the first one that does not, whether it runs or not. Those in `if` and in `a if b else c`
// may lack, as in jinja2: a template may ask first ("is filter"). They fail when they run.
void require_known_names(const Body& body);

}  // namespace poise::jinja
