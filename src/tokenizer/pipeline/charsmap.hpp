// SentencePiece's precompiled normalization: texts and what takes their place.
//
// The bytes: u32 size of the trie, the trie (a double array of u32 units), and the replacements, each ended by a NUL. A
// unit has its label in bits 0-7, bit 8 says that the node has a value, bits 10-30 are the offset to its children
// (times 256 where bit 9 is set). The value, where the replacement begins, is in the unit at the offset, bits 0-30.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

class CharsMap {
 public:
  CharsMap() = default;  // replaces nothing
  // Throws invalid_file for bytes that are none.
  explicit CharsMap(std::string_view bytes);
  // Throws invalid_file for text that is no base64, too.
  static CharsMap from_base64(std::string_view text);

  bool empty() const { return units_.empty(); }

  // The longest front of `text` that has a replacement, and that.
  struct Match {
    std::size_t length = 0;
    std::string_view replacement;
  };
  std::optional<Match> longest(std::string_view text) const;

  // As Hugging Face's library does it: graphemes of less than 6 bytes, then characters, each by the shortest of its
  // fronts that has a replacement.
  std::string apply_to_graphemes(std::string_view text) const;
  // How many bytes in front of its result that library takes for some of the first `front` bytes of the text.
  std::size_t front_of_graphemes(std::string_view text, std::size_t front) const;

 private:
  // Calls visit(part, replacement) for the parts in their order, until it returns false; no replacement: the part
  // stays.
  template <typename Visit>
  void graphemes(std::string_view text, Visit&& visit) const;
  // Calls visit(length, value) for the fronts of `text` that have a value, the shortest first, until it returns false.
  template <typename Visit>
  void fronts(std::string_view text, Visit&& visit) const;
  std::optional<std::string_view> shortest(std::string_view text) const;
  std::string_view replacement(std::uint32_t at) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace poise
