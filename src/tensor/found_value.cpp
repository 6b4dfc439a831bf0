#include "tensor/found_value.hpp"

namespace poise {

std::string found_value(const Value* value) {
  constexpr std::size_t kMostBytes = 100;
  if (value == nullptr) return "nothing";
  std::string text = to_json(*value);
  if (text.size() <= kMostBytes) return text;
  std::size_t end = kMostBytes;
  while ((static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // between characters
  return text.substr(0, end) + "...";
}

}  // namespace poise
