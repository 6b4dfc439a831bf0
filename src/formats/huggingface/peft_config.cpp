#include "formats/huggingface/peft_config.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/function_ref.hpp"
#include "bytes/short_text.hpp"
#include "model/fault_lists.hpp"
#include "syntax/element_value.hpp"

namespace poise::huggingface {
namespace {

constexpr std::uint64_t kMaxRank = 1 << 16;
constexpr std::size_t kMaxPatterns = 4096;  // patterns in one field

// Returns a value for messages: JSON, shortened to 60 bytes, or "a list or an object".
std::string format_value(const Value& value) {
  constexpr std::size_t kMost = 60;
  const bool is_list = value.get_if<Value::Array>() != nullptr || value.get_if<Attributes>() != nullptr;
  return is_list ? "a list or an object" : shorten(to_json(value), kMost);
}

bool is_absent(const Value* value) { return value == nullptr || *value == Value(); }

}  // namespace

class PeftConfig::Reader {
 public:
  Reader(const Attributes& keys, std::vector<std::string>& faults, std::vector<std::string>& refusals)
      : keys_(keys), faults_(faults), refusals_(refusals) {}

  std::string read_text(std::string_view key) {
    const Value* value = keys_.find(key);
    if (is_absent(value)) return {};
    if (const auto* found = value->get_if<std::string>()) return *found;
    add_unexpected(key, *value, "text");
    return {};
  }

  bool read_flag(std::string_view key) {
    const Value* value = keys_.find(key);
    if (is_absent(value)) return false;
    if (const auto* found = value->get_if<bool>()) return *found;
    add_unexpected(key, *value, "true or false");
    return false;
  }

  std::uint64_t read_rank(std::string_view key, const Value* value) {
    const auto found = convert_to_double(value);
    if (found && *found >= 1 && *found <= static_cast<double>(kMaxRank) && *found == std::floor(*found))
      return static_cast<std::uint64_t>(*found);
    const std::string wanted = fmt::format("1 to {}", kMaxRank);
    value == nullptr ? add_missing(key) : add_unexpected(key, *value, wanted);
    return 1;
  }

  double read_alpha(std::string_view key, const Value* value) {
    const auto found = convert_to_double(value);
    if (found && std::isfinite(*found)) return *found;
    value == nullptr ? add_missing(key) : add_unexpected(key, *value, "a number");
    return 0;
  }

  template <typename Number>
  Patterns<Number> read_patterns(std::string_view key, FunctionRef<Number(std::string_view where, const Value*)> read) {
    Patterns<Number> result;
    const Value* value = keys_.find(key);
    if (is_absent(value)) return result;
    const auto* map = value->get_if<Attributes>();
    if (map == nullptr) {
      add_unexpected(key, *value, "an object");
      return result;
    }
    if (!is_within_limit(key, map->size())) return result;
    for (const auto& [pattern, own] : *map) {
      const std::string where = fmt::format("{}: {}", key, pattern);
      const Number read_number = read(where, &own);
      if (auto made = parse_pattern(pattern, ModulePattern::Matches::ending, std::string(key)))
        result.emplace_back(*std::move(made), read_number);
    }
    return result;
  }

  // Returns std::nullopt if target_modules is missing or faulty, or is "all-linear": which modules this means depends
  // on the base model.
  std::optional<std::vector<ModulePattern>> read_targets() {
    constexpr std::string_view kKey = "target_modules";
    const Value* value = keys_.find(kKey);
    if (is_absent(value)) return std::nullopt;
    std::vector<ModulePattern> result;
    const auto* list = value->get_if<Value::Array>();
    if (const auto* expression = value->get_if<std::string>()) {
      if (*expression == "all-linear") return std::nullopt;
      auto made = parse_pattern(*expression, ModulePattern::Matches::whole, std::string(kKey));
      if (!made) return std::nullopt;
      result.push_back(*std::move(made));
    } else if (list == nullptr) {
      add_unexpected(kKey, *value, "text, or a list of it");
      return std::nullopt;
    } else if (!is_within_limit(kKey, list->size())) {
      return std::nullopt;
    } else {
      for (const Value& item : *list) {
        const auto* name = item.get_if<std::string>();
        if (name == nullptr) {
          add_unexpected(kKey, item, "text, or a list of it");
          return std::nullopt;
        }
        if (auto made = parse_pattern(*name, ModulePattern::Matches::ending, std::string(kKey)))
          result.push_back(*std::move(made));
      }
    }
    return result;
  }

  void refuse(std::string problem) { refusals_.push_back(std::move(problem)); }

  // Refuses ways of initializing an adapter that make PEFT change the model's own matrices when it loads the adapter.
  void refuse_changed_base() {
    constexpr std::string_view kKey = "init_lora_weights";
    const auto* word = keys_.get_if<std::string>(kKey);
    if (word == nullptr) return;
    const bool changes = word->starts_with("pissa") || *word == "olora" || *word == "corda" || *word == "loftq";
    if (changes)
      refuse(
          fmt::format("{} is \"{}\", which changes the model's own matrices before the adapter is added: in Python, "
                      "save it with path_initial_model_for_weight_conversion, which makes a plain adapter of it",
                      kKey, *word));
  }
  void refuse_true(std::string_view key) {
    if (read_flag(key)) refuse(fmt::format("{} is true, only false is supported", key));
  }
  void refuse_any(std::string_view key) {
    const Value* value = keys_.find(key);
    if (is_absent(value) || *value == Value(Value::Array{}) || *value == Value(Attributes{}) || *value == Value(false))
      return;
    refuse(fmt::format("{} is not supported", key));
  }
  const Value* find(std::string_view key) const { return keys_.find(key); }

 private:
  void add_missing(std::string_view key) { add_fault(faults_, fmt::format("{} is missing", key)); }
  void add_unexpected(std::string_view key, const Value& found, std::string_view wanted) {
    add_fault(faults_, fmt::format("{} is {}, expected {}", key, format_value(found), wanted));
  }

  bool is_within_limit(std::string_view key, std::size_t patterns) {
    if (patterns <= kMaxPatterns) return true;
    add_fault(faults_, fmt::format("{} has {} patterns, at most {} are read", key, patterns, kMaxPatterns));
    return false;
  }

  std::optional<ModulePattern> parse_pattern(std::string_view expression, ModulePattern::Matches matches,
                                             const std::string& where) {
    try {
      return ModulePattern(expression, matches, where);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      add_fault(faults_, error.message());
      return std::nullopt;
    }
  }

  const Attributes& keys_;
  std::vector<std::string>& faults_;
  std::vector<std::string>& refusals_;
};

PeftConfig::PeftConfig(const Attributes& keys, std::vector<std::string>& faults, std::vector<std::string>& refusals) {
  Reader read(keys, faults, refusals);
  if (const std::string kind = read.read_text("peft_type"); !kind.empty() && kind != "LORA")
    read.refuse(fmt::format("peft_type is {}, only LORA is supported", format_value(Value(kind))));
  for (const std::string_view key : {"use_dora", "use_qalora", "lora_bias"}) read.refuse_true(key);
  for (const std::string_view key : {"layer_replication", "megatron_config", "alora_invocation_tokens",
                                     "target_parameters", "trainable_token_indices", "arrow_config"})
    read.refuse_any(key);
  base_model_ = read.read_text("base_model_name_or_path");
  read.refuse_changed_base();
  root_ = read.read_flag("use_rslora");
  fan_in_fan_out_ = read.read_flag("fan_in_fan_out");
  ensure_weight_tying_ = read.read_flag("ensure_weight_tying");
  rank_ = read.read_rank("r", read.find("r"));
  alpha_ = read.read_alpha("lora_alpha", read.find("lora_alpha"));
  ranks_ = read.read_patterns<std::uint64_t>(
      "rank_pattern", [&](std::string_view where, const Value* value) { return read.read_rank(where, value); });
  alphas_ = read.read_patterns<double>(
      "alpha_pattern", [&](std::string_view where, const Value* value) { return read.read_alpha(where, value); });
  targets_ = read.read_targets();
}

std::uint64_t PeftConfig::find_rank(std::string_view module) const {
  const auto found = std::ranges::find_if(ranks_, [&](const auto& row) { return row.first.matches(module); });
  return found == ranks_.end() ? rank_ : found->second;
}

double PeftConfig::find_factor(std::string_view module) const {
  const auto found = std::ranges::find_if(alphas_, [&](const auto& row) { return row.first.matches(module); });
  const double alpha = found == alphas_.end() ? alpha_ : found->second;
  const auto divisor = static_cast<double>(find_rank(module));
  return alpha / (root_ ? std::sqrt(divisor) : divisor);
}

std::optional<bool> PeftConfig::is_target(std::string_view module) const {
  if (!targets_) return std::nullopt;
  return std::ranges::any_of(*targets_, [&](const ModulePattern& pattern) { return pattern.matches(module); });
}

namespace {

bool is_plain(std::string_view text) {
  return text.find_first_of("*+?[](){}|\\^$") == std::string_view::npos &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool matches_plain(std::string_view text, std::string_view plain) {
  return std::ranges::equal(text, plain, [](char c, char wanted) { return wanted == '.' || c == wanted; });
}

}  // namespace

ModulePattern::ModulePattern(std::string_view expression, Matches matches, const std::string& where)
    : pattern_(Plain{std::string(expression), matches == Matches::whole}) {
  if (is_plain(expression)) return;
  const std::string_view before = matches == Matches::ending ? R"((?:.*\.)?)" : "";
  pattern_ = Regex(fmt::format(R"(\A{}(?:{})\z)", before, expression), where);
}

bool ModulePattern::matches(std::string_view module) const {
  if (const auto* plain = std::get_if<Plain>(&pattern_)) {
    if (module.size() < plain->text.size()) return false;
    const std::size_t begin = module.size() - plain->text.size();
    if (begin != 0 && (plain->anchored || module[begin - 1] != '.')) return false;
    return matches_plain(module.substr(begin), plain->text);
  }
  RegexMatcher matcher(std::get<Regex>(pattern_));
  matcher.start_time_limit(module.size());
  matcher.begin_text(module);
  std::size_t from = 0;
  std::size_t to = 0;
  return matcher.find_next(from, to);
}

}  // namespace poise::huggingface
