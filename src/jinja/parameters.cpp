#include "jinja/parameters.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace poise::jinja {

std::optional<Object> Parameters::take(std::string_view name) {
  if (next_ < positional_.size()) return positional_[next_++];
  return keyword(name);
}

std::optional<Object> Parameters::keyword(std::string_view name) {
  const auto found = std::ranges::find_if(keywords_, [&](const auto& keyword) { return keyword.first.bytes == name; });
  if (found == keywords_.end()) return std::nullopt;
  Object value = std::move(found->second);
  keywords_.erase(found);
  return value;
}

Object Parameters::required(std::string_view name) {
  if (auto value = take(name)) return *std::move(value);
  fail(fmt::format("{} needs the argument '{}'", call_, name));
}

std::optional<std::int64_t> Parameters::optional_integer(std::string_view name) {
  const auto value = take(name);
  if (!value || value->is_none()) return std::nullopt;
  if (value->is_undefined()) fail_undefined(*value);
  const auto number = value->integer();
  if (!number) fail(fmt::format("'{}' of {} is a {}, expected an integer", name, call_, type_name(*value)));
  return number;
}

std::int64_t Parameters::integer(std::string_view name, std::int64_t otherwise) {
  return optional_integer(name).value_or(otherwise);
}

bool Parameters::truth(std::string_view name, bool otherwise) {
  const auto value = take(name);
  return value ? is_true(*value) : otherwise;
}

TextPtr Parameters::text(std::string_view name) {
  const Object value = required(name);
  if (value.is_undefined()) fail_undefined(value);
  const auto* const found = value.get_if<TextPtr>();
  if (found == nullptr) fail(fmt::format("'{}' of {} is a {}, expected a text", name, call_, type_name(value)));
  return *found;
}

std::vector<Object> Parameters::positional() {
  std::vector<Object> rest(std::make_move_iterator(positional_.begin() + static_cast<std::ptrdiff_t>(next_)),
                           std::make_move_iterator(positional_.end()));
  next_ = positional_.size();
  return rest;
}

Keywords Parameters::keywords() { return std::exchange(keywords_, {}); }

void Parameters::finish() const {
  if (next_ < positional_.size()) fail(fmt::format("{} got {} arguments too many", call_, positional_.size() - next_));
  if (!keywords_.empty()) fail(fmt::format("{} has no argument '{}'", call_, keywords_.front().first.bytes));
}

}  // namespace poise::jinja
