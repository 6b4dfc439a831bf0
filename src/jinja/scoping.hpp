// Which names of a scope are undefined at its beginning. Jinja decides statically: a name that a scope sets, before it
// reads it and with no scope around it that mentions it, is the scope's own from the beginning, for the scopes inside
// it, too, whatever the conversation calls so.
#pragma once

#include <string>
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

  // Of the scope in which the body runs; null: none.
  const Names* unset_in(const Body& body) const {
    const auto found = unset_.find(&body);
    return found == unset_.end() ? nullptr : &found->second;
  }

 private:
  friend class ScopeSearch;

  std::unordered_map<const Body*, Names> unset_;
};

}  // namespace poise::jinja
