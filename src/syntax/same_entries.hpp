// Equality of maps whose order carries no meaning.
#pragma once

#include <algorithm>

#include <poise/value.hpp>

namespace poise {

// The same keys and values, in any order.
inline bool have_same_entries(const Attributes& a, const Attributes& b) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const Attributes::Entry& entry) {
           const Value* other = b.find(entry.first);
           return other != nullptr && *other == entry.second;
         });
}

}  // namespace poise
