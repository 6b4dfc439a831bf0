// Each byte of a template's texts has a mark: input (of a message) or template. The tokenizer finds special tokens only
// in text of the template.
//
// Positions are in bytes. Indices are in characters, as in Python. All texts are well-formed UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/characters.hpp"

namespace poise::jinja {

struct Text {
  std::string bytes;
  std::string marks = {};  // empty: no byte is input; else 1 for each byte of input, 0 for others
  bool is_markup = false;  // the text counts as escaped HTML, as after the filters "escape" and "safe"

  bool empty() const { return bytes.empty(); }
  std::size_t size() const { return bytes.size(); }
  std::string_view view() const { return bytes; }
};

// Makes a text that is all input.
Text mark_as_input(std::string text);

void append(Text& to, const Text& from);
// Appends a part of another text, with its marks.
void append(Text& to, const Text& from, std::size_t begin, std::size_t end);
// Appends bytes that all have the same mark. Callers mark bytes that replace input as input, too.
void append(Text& to, std::string_view bytes, bool is_input = false);

// Copies a range of bytes with their marks; the copy is not markup.
Text copy_part(const Text& text, std::size_t begin, std::size_t end);
bool is_input(const Text& text, std::size_t at);

// Returns the beginning of each character, then the end of the text.
std::vector<std::size_t> find_characters(std::string_view text);
std::size_t count_characters(std::string_view text);
bool is_ascii(std::string_view text);

// Returns the number that a text of at most 9 decimal digits spells; std::nullopt for others.
std::optional<std::int64_t> parse_index(std::string_view text);

// Holds a character, and the position of the next one.
struct Decoded {
  char32_t code = 0;
  std::size_t next = 0;
};
Decoded decode(std::string_view text, std::size_t at);

// Changes the case of each character. The result for an input character is input, too.
Text change_case(const Text& text, Case to);
void append_cased(Text& to, const Text& from, std::size_t begin, std::size_t end, Case how);

}  // namespace poise::jinja
