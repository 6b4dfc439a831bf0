#include "tokenizer/pipeline/fields.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

Fields::Fields(const Value& value, std::string where) : map_(value.get_if<Attributes>()), where_(std::move(where)) {
  if (map_ == nullptr) throw Error(ErrorKind::invalid_file, fmt::format("tokenizer: {}: expected an object", where_));
}

const Value* Fields::find(std::string_view key) const {
  const Value* value = map_->find(key);
  return value == nullptr || value->get_if<std::nullptr_t>() != nullptr ? nullptr : value;
}

std::string Fields::name(std::string_view key) const {
  return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
}

void Fields::fail(std::string_view key, std::string_view problem) const {
  throw Error(ErrorKind::invalid_file, fmt::format("tokenizer: {}: {}", name(key), problem));
}

bool Fields::boolean(std::string_view key, bool missing) const {
  const Value* value = find(key);
  if (value == nullptr) return missing;
  if (const auto* found = value->get_if<bool>()) return *found;
  fail(key, "expected true or false");
}

std::optional<std::string> Fields::optional_text(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* found = value->get_if<std::string>()) return *found;
  fail(key, "expected text");
}

std::string Fields::text(std::string_view key, std::string_view missing) const {
  return optional_text(key).value_or(std::string(missing));
}

std::string Fields::required_text(std::string_view key) const {
  auto found = optional_text(key);
  if (!found) fail(key, "is missing");
  return *std::move(found);
}

std::uint64_t Fields::number(std::string_view key, std::uint64_t missing) const {
  const Value* value = find(key);
  if (value == nullptr) return missing;
  if (const auto* found = value->get_if<std::uint64_t>()) return *found;
  fail(key, "expected a number that is not negative");
}

std::optional<Fields> Fields::map(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return Fields(*value, name(key));
}

std::vector<Fields> Fields::list(std::string_view key, bool optional) const {
  std::vector<Fields> result;
  const Value* value = find(key);
  if (value == nullptr && optional) return result;
  const auto* items = value == nullptr ? nullptr : value->get_if<Value::Array>();
  if (items == nullptr) fail(key, "expected a list");
  for (std::size_t i = 0; i < items->size(); ++i) result.emplace_back((*items)[i], fmt::format("{}[{}]", name(key), i));
  return result;
}

void throw_unknown_type(const Fields& fields, std::string_view type) {
  throw Error(ErrorKind::unsupported, fmt::format("tokenizer: {}: the type \"{}\" is not known", fields.where(), type));
}

void StepCount::add(const Fields& fields) {
  if (++steps_ <= kMaxSteps) return;
  throw Error(ErrorKind::unsupported, fmt::format("tokenizer: {}: more than {} steps", fields.where(), kMaxSteps));
}

Pattern Pattern::from(const Fields& fields, std::string_view key) {
  const auto of_text = [&](std::string text) {
    // As the library has it, nothing is found between all characters: where an empty expression is.
    return text.empty() ? regex("", fields.where()) : Pattern(std::move(text));
  };
  if (const Value* value = fields.find(key); value != nullptr && value->get_if<std::string>() != nullptr)
    return of_text(*value->get_if<std::string>());
  const auto map = fields.map(key);
  if (!map) fields.fail(key, "is missing");
  if (const auto expression = map->optional_text("Regex")) return regex(*expression, map->where());
  if (auto text = map->optional_text("String")) return of_text(*std::move(text));
  fields.fail(key, "expected \"String\" or \"Regex\"");
}

}  // namespace poise
