#include "tensor/part_types.hpp"

#include "bytes/short_text.hpp"

namespace poise {

std::string found_value(const Value* value) {
  constexpr std::size_t kMostBytes = 100;
  return value == nullptr ? "nothing" : shorten(to_json(*value), kMostBytes);
}

}  // namespace poise
