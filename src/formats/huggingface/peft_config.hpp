// adapter_config.json, PEFT's description of an adapter.
//
// Source: LoraConfig and get_pattern_key() of PEFT 0.17.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/value.hpp>

#include "formats/huggingface/module_patterns.hpp"

namespace poise::huggingface {

class PeftConfig {
 public:
  // Reads every field; what is wrong is appended to `faults`, what Poise does not follow to `refusals`.
  PeftConfig(const Attributes& keys, std::vector<std::string>& faults, std::vector<std::string>& refusals);

  double alpha() const { return alpha_; }
  bool fan_in_fan_out() const { return fan_in_fan_out_; }
  bool ensure_weight_tying() const { return ensure_weight_tying_; }
  std::string base_model() const { return base_model_; }

  // Of a module, by its name in the model. The first pattern that matches counts.
  std::uint64_t rank(std::string_view module) const;
  double factor(std::string_view module) const;
  // Would PEFT adapt the module? Nothing: the file does not list modules.
  std::optional<bool> targets(std::string_view module) const;

 private:
  template <typename Number>
  using Patterns = std::vector<std::pair<ModulePattern, Number>>;

  class Reader;

  std::string base_model_;
  std::uint64_t rank_ = 1;
  double alpha_ = 0;
  bool root_ = false;  // use_rslora
  bool fan_in_fan_out_ = false;
  bool ensure_weight_tying_ = false;
  Patterns<std::uint64_t> ranks_;
  Patterns<double> alphas_;
  std::optional<std::vector<ModulePattern>> targets_;
};

}  // namespace poise::huggingface
