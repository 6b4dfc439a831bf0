// Shortens long texts, and long lists of names, for messages.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace poise {

// Returns at most `most` bytes of a text, then "..." if it was longer. Characters stay whole.
std::string shorten(std::string_view text, std::size_t most);

// Returns a number with a noun: "1 tensor", "2 tensors".
std::string format_count(std::size_t count, std::string_view noun);

// Returns the end of a list that was cut: "" if nothing is missing, else " and 7 more".
std::string format_more(std::size_t count);

// Returns the first few of many names: "a, b, c", "a, b, c and 7 more".
template <typename Names>
std::string list_names(const Names& names, std::size_t most = 5) {
  std::string text;
  std::size_t count = 0;
  for (const std::string_view name : names) {
    if (count++ == most) break;
    if (count > 1) text += ", ";
    text += name;
  }
  const auto size = static_cast<std::size_t>(std::distance(std::begin(names), std::end(names)));
  return text + format_more(size > most ? size - most : 0);
}

}  // namespace poise
