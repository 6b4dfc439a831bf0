// ConfigKeys: typed look-ups in a config.json. A null counts as absent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

// Newer files keep rope_theta, and more, in a nested object. The last object with the key counts.
inline constexpr std::array<std::string_view, 2> kRopeObjects = {"rope_parameters", "rope_scaling"};

// Each throws invalid_file, naming the key, for a value of another type. Requires: map and path outlive this.
class ConfigKeys {
 public:
  // Errors show `path`.
  ConfigKeys(const Attributes& map, const std::string& path) : map_(map), path_(path) {}

  std::optional<std::int64_t> integer(std::string_view key) const;  // of 32 bits
  std::optional<float> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;

  // Throws for a missing key, too.
  std::int64_t required(std::string_view key) const;

  // True when the key is not there, not even with null.
  bool absent(std::string_view key) const { return map_.find(key) == nullptr; }

  // Null when absent.
  const Attributes* object(std::string_view key) const;
  const Value::Array* list(std::string_view key) const;

  // A list of numbers; empty when absent.
  std::vector<double> numbers(std::string_view key) const;

  float rope_theta(float by_default = 10000.0F) const;

 private:
  const Value* find(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;

  const Attributes& map_;
  const std::string& path_;
};

}  // namespace poise
