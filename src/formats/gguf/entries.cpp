#include "formats/gguf/entries.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poise::gguf {

const Value* Entries::find(std::string_view key) const {
  const auto entry = std::ranges::find(list_, key, &Attributes::Entry::first);
  return entry == list_.end() ? nullptr : &entry->second;
}

std::uint64_t Entries::number(std::string_view key) const {
  const Value* value = find(key);
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  return number == nullptr ? 0 : *number;
}

std::optional<Value> Entries::take(std::string_view key) {
  const auto entry = std::ranges::find(list_, key, &Attributes::Entry::first);
  if (entry == list_.end()) return std::nullopt;
  Value value = std::move(entry->second);
  list_.erase(entry);
  return value;
}

std::optional<std::string> Entries::take_text(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr || value->get_if<std::string>() == nullptr) return std::nullopt;
  return std::move(*take(key)).take<std::string>();
}

std::optional<std::int64_t> Entries::take_number(std::string_view key) {
  const Value* value = find(key);
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  if (number == nullptr || *number > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    return std::nullopt;
  const auto result = static_cast<std::int64_t>(*number);
  take(key);
  return result;
}

}  // namespace poise::gguf
