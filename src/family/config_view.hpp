// ConfigView: a model's configuration as its family reads it: hyperparameters, the keys of config.json, and how its
// experts are stored.
#pragma once

#include <string>

#include <poise/model.hpp>

#include "family/config_keys.hpp"
#include "family/experts_stored.hpp"

namespace poise {

// Requires: what it is made from outlives it.
class ConfigView {
 public:
  // Without keys all of them have their defaults.
  ConfigView(const Config& view_config)
      : ConfigView(view_config, no_keys()) {}  // NOLINT(google-explicit-constructor): hyperparameters are one
  ConfigView(const Config& view_config, const Attributes& keys_of_json,
             ExpertsStored experts_stored = ExpertsStored::separate)
      : config(view_config), json(keys_of_json), experts(experts_stored) {}

  ConfigKeys keys() const { return {json, no_path()}; }

  const Config& config;
  const Attributes& json;
  const ExpertsStored experts;

 private:
  static const Attributes& no_keys() {
    static const Attributes none;
    return none;
  }
  static const std::string& no_path() {
    static const std::string none;
    return none;
  }
};

}  // namespace poise
