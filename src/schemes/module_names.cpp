#include "schemes/module_names.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/ascii.hpp"
#include "bytes/utf8.hpp"

namespace poise {
namespace {

constexpr std::string_view kExpression = "re:";
constexpr std::string_view kLinear = "Linear";
constexpr std::size_t kMostExpressions = 4096;  // of all lists
constexpr std::chrono::seconds kLongest{5};     // of all matches, and of reading the expressions

// By the habits of Python: modules have names in small letters.
bool is_class(std::string_view target) {
  return !target.empty() && is_ascii_upper(target.front()) && target.find('.') == std::string_view::npos;
}

}  // namespace

void ExpressionBudget::count() {
  if (++expressions > kMostExpressions)
    throw Error(ErrorKind::unsupported,
                fmt::format("quantization_config: more than {} regular expressions are not read", kMostExpressions));
}

void ExpressionBudget::spend(Clock::duration time) {
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
      expressions_.push_back(read(*text));
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

ModuleList::Expression ModuleList::read(const std::string& target) {
  budget_->count();
  const auto start = ExpressionBudget::Clock::now();
  auto regex =
      std::make_unique<const Regex>(std::string_view(target).substr(kExpression.size()), "quantization_config");
  auto matcher = std::make_unique<RegexMatcher>(*regex);
  budget_->spend(ExpressionBudget::Clock::now() - start);
  return {target, std::move(regex), std::move(matcher)};
}

bool ModuleList::matches(const Expression& expression, const std::string& module) const {
  if (!is_utf8(module)) return false;
  const std::scoped_lock lock(budget_->matching);
  const auto start = ExpressionBudget::Clock::now();
  expression.matcher->allow(module.size());
  expression.matcher->begin(module);
  std::size_t begin = 0;
  std::size_t end = 0;
  // The first match is the one that begins first.
  const bool found = expression.matcher->next(begin, end) && begin == 0;
  budget_->spend(ExpressionBudget::Clock::now() - start);
  return found;
}

ModuleLists::ModuleLists(const Attributes& config) {
  const auto budget = std::make_shared<ExpressionBudget>();
  const auto list_of = [](const Attributes& object, std::string_view key) {
    const Value* value = object.find(key);
    return value == nullptr ? nullptr : value->get_if<Value::Array>();
  };
  if (const auto* list = list_of(config, "ignore")) ignored.emplace(*list, budget);
  const Value* groups = config.find("config_groups");
  const auto* map = groups == nullptr ? nullptr : groups->get_if<Attributes>();
  if (map == nullptr) return;
  for (const auto& [name, group] : *map) {
    const auto* keys = group.get_if<Attributes>();
    const auto* list = keys == nullptr ? nullptr : list_of(*keys, "targets");
    if (list != nullptr)
      targets.emplace(std::piecewise_construct, std::forward_as_tuple(name), std::forward_as_tuple(*list, budget));
  }
}

}  // namespace poise
