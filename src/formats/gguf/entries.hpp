// Entries of metadata; readers take the ones that they understand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise::gguf {

class Entries {
 public:
  // Requires: the key is not there. Returns the value until entries change.
  const Value& add(std::string key, Value value) { return list_.emplace_back(std::move(key), std::move(value)).second; }

  // Null if it was never added, or has been taken.
  const Value* find(std::string_view key) const;
  // The value of an integer that is not negative; 0 for everything else.
  std::uint64_t number(std::string_view key) const;

  std::optional<Value> take(std::string_view key);
  std::optional<std::string> take_text(std::string_view key);
  // A number of 31 bits; does not take other values.
  std::optional<std::int64_t> take_number(std::string_view key);

  // The remaining entries, in order.
  std::vector<Attributes::Entry>& rest() { return list_; }
  const std::vector<Attributes::Entry>& rest() const { return list_; }

 private:
  std::vector<Attributes::Entry> list_;
};

}  // namespace poise::gguf
