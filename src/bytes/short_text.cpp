#include "bytes/short_text.hpp"

#include <fmt/format.h>

namespace poise {

std::string shorten(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr std::size_t kMostFollow = 3;  // bytes of a character after its first one
  std::size_t end = most;
  while (end > 0 && most - end < kMostFollow && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string format_count(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string format_more(std::size_t count) { return count == 0 ? std::string() : fmt::format(" and {} more", count); }

}  // namespace poise
