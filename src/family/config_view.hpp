// Gives access to a model's configuration as its family reads it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/value.hpp>

#include "syntax/fields.hpp"

namespace poise {

// Names the form in which a checkpoint stores the matrices of experts.
enum class ExpertsStored : std::uint8_t {
  separate,        // a tensor for each expert
  stacked_in_out,  // one for all of them: [experts, in, out]
  stacked_out_in,  // [experts, out, in]
};

// Newer files keep rope_theta, and more, in a nested object. If both objects have a key, the last one counts.
inline constexpr std::array<std::string_view, 2> kRopeObjects = {"rope_parameters", "rope_scaling"};

// Looks up keys of a config.json by type. Requires: map and path outlive this.
class ConfigKeys : public Fields {
 public:
  // Errors show `path`.
  ConfigKeys(const Attributes& map, std::string_view path) : Fields(map, "config", path) {}

  std::optional<std::int64_t> read_integer(
      std::string_view key) const;  // throws for other values than integers of 32 bits
  // Throws invalid_file if the key is missing.
  std::int64_t require_integer(std::string_view key) const;
  std::optional<float> read_number(std::string_view key) const;
  // Returns an empty list if the key is missing.
  std::vector<double> read_numbers(std::string_view key) const;
  float read_rope_theta(float by_default = 10000.0F) const;
};

// Holds hyperparameters, the keys of config.json, and how experts are stored. Requires: the arguments outlive this.
class ConfigView {
 public:
  // Makes a view without keys of config.json: all have their defaults.
  // NOLINTNEXTLINE(google-explicit-constructor): a Config is a view of itself
  ConfigView(const Config& view_config) : ConfigView(view_config, empty_attributes()) {}
  ConfigView(const Config& view_config, const Attributes& keys_of_json,
             ExpertsStored experts_stored = ExpertsStored::separate)
      : config(view_config), json(keys_of_json), experts(experts_stored) {}

  ConfigKeys keys() const { return {json, {}}; }

  const Config& config;
  const Attributes& json;
  const ExpertsStored experts;

 private:
  static const Attributes& empty_attributes() {
    static const Attributes none;
    return none;
  }
};

}  // namespace poise
