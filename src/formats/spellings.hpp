// Spellings: what a format calls the element types that it holds. Each format has a table of its own.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include <poise/dtype.hpp>

namespace poise {

// A row of such a table: text, a number, or what else the format writes.
template <typename Text>
struct Spelling {
  DType dtype;
  Text text;
};

// The type that is spelled so.
template <typename Text, std::size_t kRows>
std::optional<DType> dtype_spelled(const std::array<Spelling<Text>, kRows>& table, const Text& text) {
  const auto row = std::ranges::find(table, text, &Spelling<Text>::text);
  return row == table.end() ? std::nullopt : std::optional(row->dtype);
}

// How a type is spelled; nothing where the format does not hold it.
template <typename Text, std::size_t kRows>
std::optional<Text> spelling_in(const std::array<Spelling<Text>, kRows>& table, DType dtype) {
  const auto row = std::ranges::find(table, dtype, &Spelling<Text>::dtype);
  return row == table.end() ? std::nullopt : std::optional(row->text);
}

}  // namespace poise
