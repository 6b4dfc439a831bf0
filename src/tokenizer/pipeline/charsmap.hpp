// Applies SentencePiece's precompiled normalization (charsmap): a table of texts and their replacements.
//
// It consists of a u32 with the size of the trie in bytes, the trie (a double array of u32 units), and the
// replacements, each with a final NUL. The unit of a node has its label in bits 0-7; bit 8 is set if the node has a
// value; bits 10-30 are an offset (times 256 if bit 9 is set). The node's place XOR this offset is its base. The child
// for a byte is at base XOR byte. The unit at the base has the value in bits 0-30: the offset of the replacement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

class CharsMap {
 public:
  CharsMap() = default;  // replaces no text
  // Throws invalid_file for invalid bytes.
  explicit CharsMap(std::string_view bytes);
  // Throws invalid_file for invalid base64, and for invalid bytes in it.
  static CharsMap read_base64(std::string_view text);

  bool empty() const { return units_.empty(); }

  // Describes the longest prefix of a text that has a replacement.
  struct Match {
    std::size_t length = 0;
    std::string_view replacement;
  };
  std::optional<Match> find_longest(std::string_view text) const;

  // Replaces as Hugging Face's library does: a grapheme of less than 6 bytes becomes the replacement of its shortest
  // prefix that has a replacement. If the grapheme is longer, or has no such prefix, each of its characters is replaced
  // by the same rule.
  std::string apply_to_graphemes(std::string_view text) const;
  // Hugging Face's library assigns each byte of a result to a character of the text. Returns how many bytes at the
  // front of apply_to_graphemes() belong to the first `front` bytes of the text.
  std::size_t measure_front(std::string_view text, std::size_t front) const;

 private:
  // Calls visit(part, replacement) for the parts of the text in order, until it returns false. A part without a
  // replacement stays as it is.
  template <typename Visit>
  void visit_graphemes(std::string_view text, Visit&& visit) const;
  // Calls visit(length, value) for the prefixes of `text` that have a value, the shortest first, until it returns
  // false.
  template <typename Visit>
  void visit_prefixes(std::string_view text, Visit&& visit) const;
  std::optional<std::string_view> find_shortest(std::string_view text) const;
  std::string_view read_replacement(std::uint32_t at) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace poise
