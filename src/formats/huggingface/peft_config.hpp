// Reads adapter_config.json, PEFT's description of an adapter.
//
// Source: LoraConfig and get_pattern_key() of PEFT 0.17.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <poise/value.hpp>

#include "patterns/regex.hpp"

namespace poise::huggingface {

// Matches names of modules by a pattern, as PEFT does.
class ModulePattern {
 public:
  enum class Matches : std::uint8_t { whole, ending };  // only a whole name, or also the end of a name after a dot

  // Compiles a regular expression, in the syntax that Python and PCRE2 share. Throws invalid_file for an invalid
  // expression. The message has the expression and `where`, which names its field.
  ModulePattern(std::string_view expression, Matches matches, const std::string& where);

  // Returns true if the pattern matches a module's name. Throws unsupported if matching takes longer than any real
  // expression needs. Requires: the name is well-formed UTF-8.
  bool matches(std::string_view module) const;

 private:
  // Holds a pattern without special characters other than dots, as most are. A dot matches any character.
  struct Plain {
    std::string text;
    bool anchored;
  };
  std::variant<Plain, Regex> pattern_;
};

class PeftConfig {
 public:
  // Reads the fields. Appends errors to `faults`, and features that Poise does not support to `refusals`.
  PeftConfig(const Attributes& keys, std::vector<std::string>& faults, std::vector<std::string>& refusals);

  double alpha() const { return alpha_; }
  bool fan_in_fan_out() const { return fan_in_fan_out_; }
  bool ensure_weight_tying() const { return ensure_weight_tying_; }
  std::string base_model() const { return base_model_; }

  // Return the rank and the factor of a module. The first matching pattern of rank_pattern gives its rank, that of
  // alpha_pattern its alpha; without a match, r and lora_alpha do. The factor is alpha / rank, or alpha / sqrt(rank)
  // with use_rslora.
  std::uint64_t find_rank(std::string_view module) const;
  double find_factor(std::string_view module) const;
  // Returns true if target_modules names the module; std::nullopt if it is missing, faulty or "all-linear".
  std::optional<bool> is_target(std::string_view module) const;

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
