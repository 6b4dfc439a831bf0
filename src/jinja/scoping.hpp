// Finds the names of a scope that are undefined at its beginning. Jinja decides statically: a name that a scope sets,
// before it reads it and with no scope around it that mentions it, is the scope's own from the beginning, for the
// scopes inside it, too, whatever the conversation calls so.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jinja/syntax_tree.hpp"

namespace poise::jinja {

class Scoping {
 public:
  using Names = std::vector<std::pair<std::string, Object>>;  // with undefined values

  // Requires: the template outlives this, in its place.
  explicit Scoping(const Body& whole);

  // Returns the undefined names of the scope in which the body runs; null if there are none.
  const Names* unset_in(const Body& body) const {
    const auto found = unset_.find(&body);
    return found == unset_.end() ? nullptr : &found->second;
  }

 private:
  friend class ScopeSearch;

  std::unordered_map<const Body*, Names> unset_;
};

// Finds the names that a macro's body uses: "caller", "kwargs" and "varargs" are parameters of macros that use them.

bool uses(const Statement& macro, std::string_view name);

// Checks that the filters and tests of a template exist.

// Throws SyntaxFailure for the first one that does not, whether it runs or not. Those in `if` and in `a if b else c`
// may be missing, as in jinja2: a template may ask first ("is filter"). They fail when they run.
void require_known_names(const Body& body);

}  // namespace poise::jinja
