#include "tokenizer/pipeline/charsmap.hpp"

#include <algorithm>

#include <poise/error.hpp>

#include "tokenizer/pipeline/base64.hpp"
#include "tokenizer/pipeline/unicode.hpp"

namespace poise {
namespace {

[[noreturn]] void refuse(const char* problem) {
  throw Error(ErrorKind::invalid_file, std::string("precompiled_charsmap: ") + problem);
}

std::uint32_t u32(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

}  // namespace

CharsMap::CharsMap(std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes.size() < 4) refuse("its size is cut");
  const std::uint32_t size = u32(bytes, 0);
  bytes.remove_prefix(4);
  if (size > bytes.size() || size % 4 != 0 || size == 0)
    refuse("the trie is larger than the bytes, empty, or no whole number of units");
  units_.reserve(size / 4);
  for (std::size_t i = 0; i < size; i += 4) units_.push_back(u32(bytes, i));
  texts_ = bytes.substr(size);
}

CharsMap CharsMap::from_base64(std::string_view text) {
  const auto bytes = base64_decoded(text);
  if (!bytes) refuse("no base64");
  return CharsMap(*bytes);
}

template <typename Visit>
void CharsMap::fronts(std::string_view text, Visit&& visit) const {
  if (units_.empty()) return;
  std::size_t node = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) return;
    node ^= byte;
    if (node >= units_.size()) return;
    const std::uint32_t unit = units_[node];
    if ((unit & (1U << 31 | 0xFF)) != byte) return;
    node ^= offset(unit);
    if (node >= units_.size()) return;
    if ((unit >> 8 & 1) != 0 && !visit(i + 1, units_[node] & 0x7FFFFFFF)) return;
  }
}

std::string_view CharsMap::replacement(std::uint32_t at) const {
  if (at >= texts_.size()) return {};
  const std::string_view rest = std::string_view(texts_).substr(at);
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

std::optional<CharsMap::Match> CharsMap::longest(std::string_view text) const {
  std::optional<Match> match;
  fronts(text, [&](std::size_t length, std::uint32_t value) {
    match = {length, replacement(value)};
    return true;
  });
  return match;
}

std::optional<std::string_view> CharsMap::shortest(std::string_view text) const {
  std::optional<std::string_view> found;
  fronts(text, [&](std::size_t, std::uint32_t value) {
    found = replacement(value);
    return false;
  });
  return found;
}

std::string CharsMap::apply_to_graphemes(std::string_view text) const {
  constexpr std::size_t kLongestGrapheme = 5;
  if (empty()) return std::string(text);
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = unicode::grapheme_length(text);
    const std::string_view grapheme = text.substr(0, length);
    text.remove_prefix(length);
    if (length <= kLongestGrapheme) {
      if (const auto found = shortest(grapheme)) {
        result += unicode::well_formed(*found);
        continue;
      }
    }
    unicode::for_each(grapheme, [&](char32_t, std::string_view bytes) {
      const auto found = shortest(bytes);
      result += found ? unicode::well_formed(*found) : std::string(bytes);
    });
  }
  return result;
}

}  // namespace poise
