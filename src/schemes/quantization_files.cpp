#include "schemes/quantization_files.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "syntax/fields.hpp"

namespace poise {
namespace {

constexpr std::string_view kExpression = "re:";
constexpr std::string_view kLinear = "Linear";
constexpr std::size_t kMostExpressions = 4096;  // in all lists of a configuration together
constexpr std::chrono::seconds kLongest{5};     // the time for compiling and matching all expressions

// Returns true for a name of a Python class. Such names begin with a capital letter; those of modules do not.
bool is_class(std::string_view target) {
  return !target.empty() && is_ascii_upper(target.front()) && target.find('.') == std::string_view::npos;
}

}  // namespace

void ExpressionBudget::count_expression() {
  if (++expressions > kMostExpressions)
    throw Error(ErrorKind::unsupported,
                fmt::format("quantization_config: more than {} regular expressions are not read", kMostExpressions));
}

void ExpressionBudget::add_time(Clock::duration time) {
  spent += time;
  if (spent > kLongest)
    throw Error(ErrorKind::unsupported, "quantization_config: its regular expressions take too long");
}

ModuleList::ModuleList(const Value::Array& list, std::shared_ptr<ExpressionBudget> budget)
    : budget_(std::move(budget)) {
  for (const Value& value : list) {
    const auto* text = value.get_if<std::string>();
    if (text == nullptr) continue;
    if (text->starts_with(kExpression)) {
      expressions_.push_back(compile_expression(*text));
    } else if (*text == kLinear) {
      linear_ = *text;
    } else if (is_class(*text)) {
      other_class_ = *text;
    } else {
      names_.insert(*text);
    }
  }
  std::ranges::sort(expressions_, {}, &Expression::target);
}

ModuleList::Match ModuleList::match(const std::string& module) const {
  if (const auto name = names_.find(module); name != names_.end()) return {Naming::by_name, *name};
  for (const Expression& expression : expressions_) {
    if (matches(expression, module)) return {Naming::by_expression, expression.target};
  }
  if (!linear_.empty()) return {Naming::by_class, linear_};
  if (!other_class_.empty()) return {Naming::by_other_class, other_class_};
  return {};
}

ModuleList::Expression ModuleList::compile_expression(const std::string& target) {
  budget_->count_expression();
  const auto start = ExpressionBudget::Clock::now();
  auto regex =
      std::make_unique<const Regex>(std::string_view(target).substr(kExpression.size()), "quantization_config");
  auto matcher = std::make_unique<RegexMatcher>(*regex);
  budget_->add_time(ExpressionBudget::Clock::now() - start);
  return {target, std::move(regex), std::move(matcher)};
}

bool ModuleList::matches(const Expression& expression, const std::string& module) const {
  if (!is_utf8(module)) return false;
  const std::scoped_lock lock(budget_->matching);
  const auto start = ExpressionBudget::Clock::now();
  expression.matcher->start_time_limit(module.size());
  expression.matcher->begin_text(module);
  std::size_t begin = 0;
  std::size_t end = 0;
  // The expression has to match at the beginning. find_next() finds the leftmost match, so one call is enough.
  const bool found = expression.matcher->find_next(begin, end) && begin == 0;
  budget_->add_time(ExpressionBudget::Clock::now() - start);
  return found;
}

ModuleLists::ModuleLists(const Attributes& config) {
  const auto budget = std::make_shared<ExpressionBudget>();
  if (const auto* list = config.get_if<Value::Array>("ignore")) ignored.emplace(*list, budget);
  const auto* map = config.get_if<Attributes>("config_groups");
  if (map == nullptr) return;
  for (const auto& [name, group] : *map) {
    const auto* list = get_member<Value::Array>(group, "targets");
    if (list != nullptr)
      targets.emplace(std::piecewise_construct, std::forward_as_tuple(name), std::forward_as_tuple(*list, budget));
  }
}

namespace {

// Converts ModelOpt's {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", ...}}. The result has
// the keys of `quantization`, or those of the file if this key is missing, and quant_method.
std::optional<Attributes> convert_from_modelopt(const Attributes& file) {
  const Value* inner = file.find("quantization");
  const auto* keys = inner == nullptr ? &file : inner->get_if<Attributes>();
  if (keys == nullptr) throw Error(ErrorKind::invalid_file, "quantization: expected an object");
  const Value* algorithm = keys->find("quant_algo");
  if (algorithm == nullptr || *algorithm == Value())
    return std::nullopt;  // at most the cache of keys and values is quantized
  if (algorithm->get_if<std::string>() == nullptr)
    throw Error(ErrorKind::invalid_file, "quantization: quant_algo: expected text");
  Attributes config = *keys;
  config.set("quant_method", "modelopt");
  return config;
}

// Converts GPTQ's {"bits": 4, "group_size": 128, "desc_act": false, ...}, or AWQ's {"w_bit": 4, "q_group_size": 128,
// "version": "GEMM"}: adds quant_method if it is missing.
std::optional<Attributes> convert_from_older_file(const Attributes& file) {
  Attributes config = file;
  const Value* method = file.find("quant_method");
  if (method == nullptr || *method == Value()) {
    config.set("quant_method", file.find("w_bit") != nullptr || file.find("q_group_size") != nullptr ? "awq" : "gptq");
  } else if (method->get_if<std::string>() == nullptr) {
    throw Error(ErrorKind::invalid_file, "quant_method: expected text");
  }
  return config;
}

constexpr std::array kFiles = std::to_array<QuantizationFile>({{"hf_quant_config.json", convert_from_modelopt},
                                                               {"quantize_config.json", convert_from_older_file},
                                                               {"quant_config.json", convert_from_older_file}});

struct DecidingKey {
  std::string_view name;
  std::string_view older = {};
};
constexpr std::array kDeciding = std::to_array<DecidingKey>({{"quant_method"},
                                                             {"quant_algo"},
                                                             {"bits", "w_bit"},
                                                             {"group_size", "q_group_size"},
                                                             {"checkpoint_format"},
                                                             {"sym"},
                                                             {"zero_point"},
                                                             {"version"}});

const Value* find_value(const Attributes& config, const DecidingKey& key) {
  const Value* value = config.find(key.name);
  if (value == nullptr && !key.older.empty()) value = config.find(key.older);
  return value == nullptr || *value == Value() ? nullptr : value;
}

// Returns a value as text in lower case, because "GEMM" and "gemm" mean the same. Shortens long values.
std::string make_lower_text(const Value& value) {
  constexpr std::size_t kMost = 60;
  const auto* text = value.get_if<std::string>();
  return shorten(to_lower_ascii(text != nullptr ? *text : to_json(value)), kMost);
}

}  // namespace

std::span<const QuantizationFile> list_quantization_files() { return kFiles; }

std::vector<std::string> find_differences(const Attributes& config, const Attributes& other) {
  std::vector<std::string> found;
  for (const DecidingKey& key : kDeciding) {
    const Value* one = find_value(config, key);
    const Value* two = find_value(other, key);
    if (one == nullptr || two == nullptr || make_lower_text(*one) == make_lower_text(*two)) continue;
    found.push_back(fmt::format("{} is {} and {}", key.name, make_lower_text(*one), make_lower_text(*two)));
  }
  return found;
}

}  // namespace poise
