#include "tokenizer/tokens/token_boundaries.hpp"

namespace poise {

void TokenBoundaries::add_characters(std::string_view token) {
  if (!is_utf8(token)) return;
  char32_t before = 0;
  bool first = true;
  unicode::for_each_character(token, [&](char32_t code, std::string_view) {
    if (!first) add_pair(before, code);
    before = code;
    first = false;
  });
}

bool TokenBoundaries::is_spelled_in_bytes(std::string_view token) {
  std::string bytes;
  return byte_level::decode(token, bytes);
}

void TokenBoundaries::add_bytes(std::string_view token) {
  if (!byte_level::decode(token, bytes_)) return;
  const std::string_view text = bytes_;
  std::size_t begin = 0;  // where the character in front of `at` begins
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (is_trail(text[at])) continue;
    if (is_ascii(text[at]) && is_ascii(text[at - 1])) {
      add_ascii_pair(text[at - 1], text[at]);
      begin = at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && is_trail(text[end])) ++end;
    const std::string_view left = text.substr(begin, at - begin);
    const std::string_view right = text.substr(at, end - at);
    begin = at;
    if (left.size() > 4 || right.size() > 4) continue;  // characters with more bytes are invalid
    if (is_trail(left.front())) add_part(make_part(left));
    if (end == text.size() && right.size() < find_announced_length(right.front())) add_part(make_part(right));
    add_pair(make_part(left), make_part(right));
  }
}

bool TokenBoundaries::is_spanned(std::string_view left, std::string_view right) const {
  if (is_ascii(left.back()) && is_ascii(right.front())) return has_ascii_pair(left.back(), right.front());
  const Part whole_left = make_part(left);
  const Part whole_right = make_part(right);
  if (has_pair(whole_left, whole_right)) return true;
  // `lefts` has the left character and those of its ends with which tokens begin. `rights` has the right character and
  // those of its beginnings with which tokens end. Most characters have few such parts.
  std::array<Part, 4> lefts{whole_left};
  std::array<Part, 4> rights{whole_right};
  std::size_t left_count = 1;
  std::size_t right_count = 1;
  for (std::size_t size = 1; size < left.size(); ++size) {
    const Part part = make_part(left.substr(left.size() - size));
    if (is_part(part)) lefts[left_count++] = part;
  }
  for (std::size_t size = 1; size < right.size(); ++size) {
    const Part part = make_part(right.substr(0, size));
    if (is_part(part)) rights[right_count++] = part;
  }
  for (std::size_t i = 0; i < left_count; ++i) {
    for (std::size_t k = i == 0 ? 1 : 0; k < right_count; ++k) {
      if (has_pair(lefts[i], rights[k])) return true;
    }
  }
  return false;
}

}  // namespace poise
