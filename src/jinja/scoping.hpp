// Finds the names of a scope that are undefined at its beginning, even if a variable of the template has that name.
// Jinja decides this before a template runs. A name is undefined if the first mention of it in the scope sets it,
// outside of `if`, and no outer scope mentions it. Inner scopes see the undefined name, too.
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
  using Names = std::vector<std::pair<std::string, Object>>;  // the names with their undefined values

  // Requires: the template outlives this, and is not moved.
  explicit Scoping(const Body& whole);

  // Returns the undefined names of the scope in which the body runs; null if there are none.
  const Names* find_unset_names(const Body& body) const {
    const auto found = unset_.find(&body);
    return found == unset_.end() ? nullptr : &found->second;
  }

 private:
  friend class ScopeSearch;

  std::unordered_map<const Body*, Names> unset_;
};

// Returns true when a macro's body uses a name. A macro has the parameters "caller", "kwargs" and "varargs" if it uses
// them.
bool uses_name(const Statement& macro, std::string_view name);

// Throws SyntaxFailure for the first filter or test that does not exist, whether it runs or not. But as in jinja2, one
// inside `if` or `a if b else c` fails only when it runs, because a template may ask first ("is filter").
void check_known_names(const Body& body);

}  // namespace poise::jinja
