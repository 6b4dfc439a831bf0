// Finds places in a text that no token spans, so that the text may be cut there. Byte pair encoding gives the same
// tokens for the runs between these boundaries as for the whole text, since every merge makes a token.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bytes/utf8.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise {

class TokenBoundaries {
 public:
  // Names the units of tokens and texts: characters, or bytes in the alphabet of byte_level.hpp, where a token may hold
  // a part of a character.
  enum class Unit { characters, bytes };
  explicit TokenBoundaries(Unit unit) : unit_(unit), pairs_((std::size_t{1} << kLogBits) / 64) {}

  // Returns true when all characters of a token are in the alphabet of bytes.
  static bool is_spelled_in_bytes(std::string_view token);

  // Adds a token. With Unit::characters, ignores invalid UTF-8, because it does not consist of whole characters. With
  // Unit::bytes, ignores a token with characters outside the alphabet, because no text with such characters is cut.
  void add(std::string_view token) { unit_ == Unit::bytes ? add_bytes(token) : add_characters(token); }

  // Calls visit(run) for the runs of a text, from front to back. With Unit::bytes, a text is one run if it has
  // characters outside the alphabet, or stands for bytes that are not UTF-8. Requires: the text is well-formed UTF-8.
  template <typename Visit>
  void for_each_run(std::string_view text, Visit&& visit) const {
    if (unit_ == Unit::bytes) {
      if (!visit_runs_of_bytes(text, visit)) visit(text);
      return;
    }
    std::size_t begin = 0;
    char32_t before = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto next = unicode::decode(text, at);
      if (at > 0 && !has_pair(before, next.code)) {
        visit(text.substr(begin, at - begin));
        begin = at;
      }
      before = next.code;
      at += next.bytes;
    }
    if (begin < text.size()) visit(text.substr(begin));
  }

 private:
  static constexpr unsigned kLogBits = 22;

  // Holds the bytes of a character, or some at its front or end, as a number that includes their count.
  using Part = std::uint64_t;
  static Part make_part(std::string_view bytes) {
    Part part = 1;
    for (const char byte : bytes) part = part << 8 | static_cast<unsigned char>(byte);
    return part;
  }
  static bool is_trail(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

  static std::size_t find_place(std::uint64_t left, std::uint64_t right) {
    std::uint64_t key = left * 0x9E3779B97F4A7C15U;
    key = (key ^ key >> 29 ^ right) * 0xD6E8FEB86659FD93U;
    return static_cast<std::size_t>(key >> (64 - kLogBits));
  }
  bool has_pair(std::uint64_t left, std::uint64_t right) const {
    return (pairs_[find_place(left, right) / 64] >> find_place(left, right) % 64 & 1) != 0;
  }
  void add_pair(std::uint64_t left, std::uint64_t right) {
    pairs_[find_place(left, right) / 64] |= std::uint64_t{1} << find_place(left, right) % 64;
  }

  static std::size_t find_part_place(Part part) { return static_cast<std::size_t>(part * 0x9E3779B97F4A7C15U >> 50); }
  bool is_part(Part part) const { return (parts_[find_part_place(part) / 64] >> find_part_place(part) % 64 & 1) != 0; }
  void add_part(Part part) { parts_[find_part_place(part) / 64] |= std::uint64_t{1} << find_part_place(part) % 64; }

  static bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }
  static std::size_t find_ascii_place(char left, char right) {
    return static_cast<std::size_t>(left) * 128 + static_cast<std::size_t>(right);
  }
  bool has_ascii_pair(char left, char right) const { return ascii_[find_ascii_place(left, right)]; }
  void add_ascii_pair(char left, char right) { ascii_[find_ascii_place(left, right)] = true; }

  void add_characters(std::string_view token);
  void add_bytes(std::string_view token);
  // Returns true when a token contains the end of `left` and the beginning of `right`, two neighbouring characters.
  bool is_spanned(std::string_view left, std::string_view right) const;

  template <typename Visit>
  bool visit_runs_of_bytes(std::string_view text, Visit&& visit) const {
    std::string decoded;
    if (!byte_level::decode(text, decoded) || !is_utf8(decoded)) return false;
    const std::string_view bytes = decoded;
    std::size_t begin = 0;  // where the run begins in the text
    std::size_t here = 0;
    std::string_view before;
    for (std::size_t at = 0; at < bytes.size(); at += before.size()) {
      const std::string_view now = bytes.substr(at, find_announced_length(bytes[at]));
      if (at > 0 && !is_spanned(before, now)) {
        visit(text.substr(begin, here - begin));
        begin = here;
      }
      for (const char byte : now) here += byte_level::count_character_bytes(byte);
      before = now;
    }
    if (begin < text.size()) visit(text.substr(begin));
    return true;
  }

  Unit unit_;
  std::vector<std::uint64_t>
      pairs_;  // a bit for each hash of two neighbouring units of a token; false positives only cost boundaries
  std::array<std::uint64_t, 256> parts_{};  // the same for the parts of characters with which tokens begin or end
  std::array<bool, 128 * 128>
      ascii_{};        // true for pairs of two ASCII bytes that a token contains, which are the most frequent pairs
  std::string bytes_;  // scratch space
};

}  // namespace poise
