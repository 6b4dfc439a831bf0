#include <poise/value.hpp>

#include <algorithm>

namespace poise {

// These functions are not in the header, because each is a page of code, which every file would contain.
Attributes::Attributes(const Attributes&) = default;
Attributes::Attributes(Attributes&&) noexcept = default;
Attributes& Attributes::operator=(const Attributes&) = default;
Attributes& Attributes::operator=(Attributes&&) noexcept = default;
Attributes::~Attributes() = default;

Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

const Value* Attributes::find(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

void Attributes::set(std::string key, Value value) {
  for (Entry& entry : entries_) {
    if (entry.first == key) {
      entry.second = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::move(key), std::move(value));
}

bool Attributes::erase(std::string_view key) {
  return std::erase_if(entries_, [&](const Entry& entry) { return entry.first == key; }) > 0;
}

bool operator==(const Attributes& a, const Attributes& b) { return a.entries_ == b.entries_; }
bool operator==(const Value& a, const Value& b) { return a.storage_ == b.storage_; }

Value::Value(std::int64_t value) {
  if (value >= 0) {
    storage_ = static_cast<std::uint64_t>(value);
  } else {
    storage_ = value;
  }
}

Attributes Attributes::from_unique(std::vector<Entry> entries) {
  Attributes attributes;
  if (!entries.empty()) attributes.entries_ = std::move(entries);
  return attributes;
}

}  // namespace poise
