#include "syntax/fields.hpp"

#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

Fields::Fields(const Value& value, std::string where, std::string_view path)
    : map_(value.get_if<Attributes>()), where_(std::move(where)), path_(path), nested_(true) {
  if (map_ == nullptr)
    throw Error(ErrorKind::invalid_file, fmt::format("{}: expected an object", where_), std::string(path_));
}

std::string Fields::make_name(std::string_view key) const {
  if (where_.empty()) return std::string(key);
  return fmt::format("{}{}{}", where_, nested_ ? "." : ": ", key);
}

void Fields::fail(std::string_view key, std::string_view problem) const {
  throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", make_name(key), problem), std::string(path_));
}

const Value* Fields::find(std::string_view key) const {
  const Value* value = map_->find(key);
  return value == nullptr || *value == Value() ? nullptr : value;
}

template <typename T>
const T* Fields::find_typed(std::string_view key, std::string_view expected) const {
  const Value* value = find(key);
  const T* found = value == nullptr ? nullptr : value->get_if<T>();
  if (value != nullptr && found == nullptr) fail(key, expected);
  return found;
}

std::optional<bool> Fields::read_boolean(std::string_view key) const {
  const auto* found = find_typed<bool>(key, "expected true or false");
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<std::string> Fields::read_text(std::string_view key) const {
  const auto* found = find_typed<std::string>(key, "expected text");
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::string Fields::read_text(std::string_view key, std::string_view missing) const {
  return read_text(key).value_or(std::string(missing));
}

std::string Fields::require_text(std::string_view key) const {
  auto found = read_text(key);
  if (!found) fail(key, "is missing");
  return *std::move(found);
}

std::uint64_t Fields::read_unsigned(std::string_view key, std::uint64_t missing) const {
  const auto* found = find_typed<std::uint64_t>(key, "expected a number that is not negative");
  return found == nullptr ? missing : *found;
}

const Attributes* Fields::find_object(std::string_view key) const {
  return find_typed<Attributes>(key, "expected an object");
}
const Value::Array* Fields::find_array(std::string_view key) const {
  return find_typed<Value::Array>(key, "expected a list");
}

std::optional<Fields> Fields::find_map(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? std::nullopt : std::optional(Fields(*value, make_name(key), path_));
}

std::vector<Fields> Fields::read_list(std::string_view key, bool optional) const {
  std::vector<Fields> result;
  const Value::Array* items = find_array(key);
  if (items == nullptr && !optional) fail(key, "expected a list");
  for (std::size_t i = 0; items != nullptr && i < items->size(); ++i)
    result.push_back(Fields((*items)[i], fmt::format("{}[{}]", make_name(key), i), path_));
  return result;
}

}  // namespace poise
