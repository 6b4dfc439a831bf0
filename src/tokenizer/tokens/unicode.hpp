// Finds properties of characters, and computes normal forms. Only make_well_formed() and append_lossy() take malformed
// UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace poise::unicode {

// Holds a character, and the number of its bytes.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};
// Returns the character at `at`. Requires: a well-formed one begins there.
inline Character decode(std::string_view text, std::size_t at) {
  const auto read_byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = read_byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (read_byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (read_byte(1) & 0x3F) << 6 | (read_byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (read_byte(1) & 0x3F) << 12 | (read_byte(2) & 0x3F) << 6 | (read_byte(3) & 0x3F), 4};
}

// Calls visit(code, bytes_of_it) for each character.
template <typename Visit>
void for_each_character(std::string_view text, Visit&& visit) {
  for (std::size_t i = 0; i < text.size();) {
    const Character next = decode(text, i);
    visit(next.code, text.substr(i, next.bytes));
    i += next.bytes;
  }
}

// Returns the text with one U+FFFD for each invalid byte, as in SentencePiece.
std::string make_well_formed(std::string_view text);

// Appends bytes as text. One U+FFFD replaces each invalid byte, or all bytes of a character that breaks off. Leaves out
// bytes at the end that may still become a character, and returns their number. With `at_end`, no byte follows, so
// these bytes are invalid.
std::size_t append_lossy(std::string& text, std::string_view bytes, bool at_end);

bool is_white_space(char32_t code);        // the property White_Space
bool is_number(char32_t code);             // category N
bool is_punctuation(char32_t code);        // category P
bool is_mark(char32_t code);               // category M
bool is_nonspacing_mark(char32_t code);    // category Mn
bool is_control_or_format(char32_t code);  // categories Cc, Cf, Co
bool is_word(char32_t code);               // an alphabetic character, mark, decimal digit, connector or joiner: \w
bool is_ideograph(char32_t code);          // true for the blocks that BERT counts as Chinese

// Returns the lower case of each character, independent of its neighbours.
std::string to_lower_case(std::string_view text);

enum class Form { nfc, nfd, nfkc, nfkd };
// Returns a normal form, in time O(n log n).
std::string to_normal_form(std::string_view text, Form form);

// Returns the size of the first grapheme cluster in bytes. Requires: text is not empty.
std::size_t measure_grapheme(std::string_view text);

}  // namespace poise::unicode

namespace poise {

// Returns a regular expression that matches runs of one script, as SentencePiece cuts text for training:
// tokenizer.json's pre-tokenizer UnicodeScripts. Hiragana, Katakana and U+30FC count as Han. Spaces and characters
// without a script belong to the run before them. At the front of a text, no run contains them.
std::string make_script_run_expression();

}  // namespace poise
