// A spelling is a format's name of an element type. Each format has its own table of spellings.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <poise/dtype.hpp>
#include <poise/value.hpp>

namespace poise {

// Holds a row of a table of spellings. A Text is a text, a number, or another value that stands for an element type.
template <typename Text>
struct Spelling {
  DType dtype;
  Text text;
};

// Returns the type with that spelling; std::nullopt if the table does not have it.
template <typename Text, std::size_t kRows>
std::optional<DType> find_spelled_dtype(const std::array<Spelling<Text>, kRows>& table, const Text& text) {
  const auto row = std::ranges::find(table, text, &Spelling<Text>::text);
  return row == table.end() ? std::nullopt : std::optional(row->dtype);
}

// Returns the spelling of a type; std::nullopt if the format does not hold it.
template <typename Text, std::size_t kRows>
std::optional<Text> find_spelling(const std::array<Spelling<Text>, kRows>& table, DType dtype) {
  const auto row = std::ranges::find(table, dtype, &Spelling<Text>::dtype);
  return row == table.end() ? std::nullopt : std::optional(row->text);
}

// Returns the kind of a metadata value, for people: "integer", "text", "array[3]".
std::string describe_value_type(const Value& value);

}  // namespace poise
