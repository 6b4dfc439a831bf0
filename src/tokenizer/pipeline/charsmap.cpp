#include "tokenizer/pipeline/charsmap.hpp"

#include <algorithm>

#include <poise/error.hpp>

#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise {
namespace {

[[noreturn]] void refuse(const char* problem) {
  throw Error(ErrorKind::invalid_file, std::string("precompiled_charsmap: ") + problem);
}

std::uint32_t read_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

std::uint32_t find_offset(std::uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

}  // namespace

CharsMap::CharsMap(std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes.size() < 4) refuse("expected 4 bytes of size, found fewer");
  const std::uint32_t size = read_u32(bytes, 0);
  bytes.remove_prefix(4);
  if (size > bytes.size() || size % 4 != 0 || size == 0)
    refuse("the size of the trie is 0, not a multiple of 4, or larger than the rest of the bytes");
  units_.reserve(size / 4);
  for (std::size_t i = 0; i < size; i += 4) units_.push_back(read_u32(bytes, i));
  texts_ = bytes.substr(size);
}

CharsMap CharsMap::read_base64(std::string_view text) {
  const auto bytes = decode_base64(text);
  if (!bytes) refuse("expected base64");
  return CharsMap(*bytes);
}

template <typename Visit>
void CharsMap::visit_prefixes(std::string_view text, Visit&& visit) const {
  if (units_.empty()) return;
  std::size_t node = find_offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) return;
    node ^= byte;
    if (node >= units_.size()) return;
    const std::uint32_t unit = units_[node];
    if ((unit & (1U << 31 | 0xFF)) != byte) return;
    node ^= find_offset(unit);
    if (node >= units_.size()) return;
    if ((unit >> 8 & 1) != 0 && !visit(i + 1, units_[node] & 0x7FFFFFFF)) return;
  }
}

std::string_view CharsMap::read_replacement(std::uint32_t at) const {
  if (at >= texts_.size()) return {};
  const std::string_view rest = std::string_view(texts_).substr(at);
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

std::optional<CharsMap::Match> CharsMap::find_longest(std::string_view text) const {
  std::optional<Match> match;
  visit_prefixes(text, [&](std::size_t length, std::uint32_t value) {
    match = {length, read_replacement(value)};
    return true;
  });
  return match;
}

std::optional<std::string_view> CharsMap::find_shortest(std::string_view text) const {
  std::optional<std::string_view> found;
  visit_prefixes(text, [&](std::size_t, std::uint32_t value) {
    found = read_replacement(value);
    return false;
  });
  return found;
}

template <typename Visit>
void CharsMap::visit_graphemes(std::string_view text, Visit&& visit) const {
  constexpr std::size_t kLongestGrapheme = 5;
  while (!text.empty()) {
    const std::size_t length = unicode::measure_grapheme(text);
    const std::string_view grapheme = text.substr(0, length);
    text.remove_prefix(length);
    if (length <= kLongestGrapheme) {
      if (const auto found = find_shortest(grapheme)) {
        if (!visit(grapheme, found)) return;
        continue;
      }
    }
    for (std::size_t i = 0; i < grapheme.size();) {
      const std::string_view character = grapheme.substr(i, unicode::decode(grapheme, i).bytes);
      i += character.size();
      if (!visit(character, find_shortest(character))) return;
    }
  }
}

std::string CharsMap::apply_to_graphemes(std::string_view text) const {
  if (empty()) return std::string(text);
  std::string result;
  result.reserve(text.size());
  visit_graphemes(text, [&](std::string_view part, std::optional<std::string_view> found) {
    result += found ? unicode::make_well_formed(*found) : std::string(part);
    return true;
  });
  return result;
}

// Hugging Face's library replaces character by character. If the replacement is longer, its last characters count as
// added. If it is shorter, its last character also stands for the missing ones. If the first characters have an empty
// replacement, the next character takes their place.
std::size_t CharsMap::measure_front(std::string_view text, std::size_t front) const {
  if (empty()) return front;
  struct Made {
    std::size_t bytes;
    std::ptrdiff_t change;  // above 0: an added character; below 0: minus the number of removed characters
  };
  constexpr std::size_t kLooks = 64;  // enough, since a front is one character or its replacement
  std::vector<Made> made;
  visit_graphemes(text, [&](std::string_view part, std::optional<std::string_view> found) {
    const std::string now = found ? unicode::make_well_formed(*found) : std::string(part);
    std::ptrdiff_t more = 0;
    unicode::for_each_character(now, [&](char32_t, std::string_view bytes) {
      made.push_back({bytes.size(), 0});
      ++more;
    });
    unicode::for_each_character(part, [&](char32_t, std::string_view) { --more; });
    for (std::ptrdiff_t i = 0; i < more; ++i) made[made.size() - 1 - static_cast<std::size_t>(i)].change = 1;
    if (more < 0 && !made.empty()) made.back().change += more;
    return made.size() < kLooks;
  });
  std::size_t result = 0;
  std::size_t at = 0;  // the place in the text
  const auto skip_character = [&] { at += at < text.size() ? unicode::decode(text, at).bytes : 0; };
  for (const Made& part : made) {
    if (part.change > 0 ? at > front : at >= front) break;
    result += part.bytes;
    if (part.change <= 0) skip_character();
    for (std::ptrdiff_t i = part.change; i < 0; ++i) skip_character();
  }
  return result;
}

}  // namespace poise
