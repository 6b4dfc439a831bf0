#include "ops/same_value.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace poise {
namespace {

// Writes a value as unambiguous text: equal texts mean equal values. Sorts maps by key.
class Spelling {
 public:
  explicit Spelling(std::string& out) : out_(out) {}

  void operator()(std::nullptr_t) { out_ += 'n'; }
  void operator()(bool value) { out_ += value ? 't' : 'f'; }
  void operator()(std::int64_t value) { out_ += fmt::format("i{},", value); }
  void operator()(std::uint64_t value) { out_ += fmt::format("i{},", value); }
  void operator()(double value) {
    if (std::isnan(value)) value = std::abs(value);
    out_ += fmt::format("d{},", value == 0 ? 0.0 : value);
  }
  void operator()(const std::string& value) { out_ += fmt::format("s{}:{}", value.size(), value); }
  void operator()(const Value::Bytes& value) {
    out_ += fmt::format("b{}:", value.size());
    for (const std::byte byte : value) out_ += static_cast<char>(byte);
  }
  void operator()(const Value::Array& value) {
    out_ += fmt::format("a{}:", value.size());
    for (const Value& item : value) spell(item);
  }
  void operator()(const Attributes& value) {
    std::vector<std::pair<std::string, const Value*>> entries;
    for (const auto& [key, item] : value) entries.emplace_back(text_of(key), &item);
    add(std::move(entries));
  }
  void operator()(const Value::Pairs& value) {
    std::vector<std::pair<std::string, const Value*>> entries;
    for (const auto& [key, item] : value) entries.emplace_back(text_of(key), &item);
    add(std::move(entries));
  }

  static std::string text_of(const Value& value) {
    std::string text;
    Spelling(text).spell(value);
    return text;
  }

 private:
  void spell(const Value& value) { std::visit(*this, value.storage()); }

  void add(std::vector<std::pair<std::string, const Value*>> entries) {
    std::ranges::sort(entries, {}, [](const auto& entry) -> const std::string& { return entry.first; });
    out_ += fmt::format("m{}:", entries.size());
    for (const auto& [key, value] : entries) {
      out_ += key;
      spell(*value);
    }
  }

  std::string& out_;
};

}  // namespace

bool same_value(const Value& a, const Value& b) { return a == b || Spelling::text_of(a) == Spelling::text_of(b); }

}  // namespace poise
