#include "family/config_keys.hpp"

#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

std::optional<std::int64_t> ConfigKeys::integer(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->get_if<std::uint64_t>(); number != nullptr && *number <= INT32_MAX)
    return static_cast<std::int64_t>(*number);
  if (const auto* number = value->get_if<std::int64_t>(); number != nullptr && *number >= INT32_MIN) return *number;
  if (const auto* number = value->get_if<double>();
      number != nullptr && *number == std::floor(*number) && std::abs(*number) <= INT32_MAX) {
    return static_cast<std::int64_t>(*number);
  }
  fail(key, "expected an integer of 32 bits");
}

std::optional<float> ConfigKeys::number(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* positive = value->get_if<std::uint64_t>()) return static_cast<float>(*positive);
  if (const auto* negative = value->get_if<std::int64_t>()) return static_cast<float>(*negative);
  const auto* fraction = value->get_if<double>();
  if (fraction == nullptr) fail(key, "expected a number");
  const auto narrowed = static_cast<float>(*fraction);
  if (!std::isfinite(narrowed)) fail(key, fmt::format("{} is not a finite number of 32 bits", *fraction));
  return narrowed;
}

std::optional<bool> ConfigKeys::boolean(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* flag = value->get_if<bool>()) return *flag;
  fail(key, "expected true or false");
}

std::optional<std::string> ConfigKeys::text(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* found = value->get_if<std::string>()) return *found;
  fail(key, "expected text");
}

std::int64_t ConfigKeys::required(std::string_view key) const {
  const auto value = integer(key);
  if (!value) fail(key, "missing");
  return *value;
}

float ConfigKeys::rope_theta(float by_default) const {
  float theta = number("rope_theta").value_or(by_default);
  for (const std::string_view key : kRopeObjects) {
    if (const Attributes* map = object(key)) theta = ConfigKeys(*map, path_).number("rope_theta").value_or(theta);
  }
  return theta;
}

const Value* ConfigKeys::find(std::string_view key) const {
  const Value* value = map_.find(key);
  return value == nullptr || value->get_if<std::nullptr_t>() != nullptr ? nullptr : value;
}

const Attributes* ConfigKeys::object(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (const auto* map = value->get_if<Attributes>()) return map;
  fail(key, "expected an object");
}

const Value::Array* ConfigKeys::list(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (const auto* items = value->get_if<Value::Array>()) return items;
  fail(key, "expected a list");
}

std::vector<double> ConfigKeys::numbers(std::string_view key) const {
  std::vector<double> result;
  const Value::Array* items = list(key);
  if (items == nullptr) return result;
  result.reserve(items->size());
  for (const Value& item : *items) {
    if (const auto* positive = item.get_if<std::uint64_t>()) {
      result.push_back(static_cast<double>(*positive));
    } else if (const auto* negative = item.get_if<std::int64_t>()) {
      result.push_back(static_cast<double>(*negative));
    } else if (const auto* fraction = item.get_if<double>()) {
      result.push_back(*fraction);
    } else {
      fail(key, "expected a list of numbers");
    }
  }
  return result;
}

void ConfigKeys::fail(std::string_view key, std::string_view problem) const {
  throw Error(ErrorKind::invalid_file, fmt::format("config: {}: {}", key, problem), path_);
}

}  // namespace poise
