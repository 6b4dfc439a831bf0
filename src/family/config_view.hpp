// ConfigView: a model's configuration as its family reads it: hyperparameters, the keys of config.json, and which of
// several forms its weights have.
#pragma once

#include <cstddef>
#include <string>

#include <poise/model.hpp>

#include "family/config_keys.hpp"

namespace poise {

// Requires: what it is made from outlives it.
class ConfigView {
 public:
  // Without keys all of them have their defaults.
  ConfigView(const Config& view_config)
      : ConfigView(view_config, no_keys()) {}  // NOLINT(google-explicit-constructor): hyperparameters are one
  ConfigView(const Config& view_config, const Attributes& keys_of_json, std::size_t form_index = 0)
      : config(view_config), json(keys_of_json), form(form_index) {}

  ConfigKeys keys() const { return {json, no_path()}; }

  const Config& config;
  const Attributes& json;
  const std::size_t form;  // 0, or one plus the index in Family::forms

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
