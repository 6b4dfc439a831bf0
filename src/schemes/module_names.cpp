#include "schemes/module_names.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"

namespace poise {
namespace {

constexpr std::string_view kExpression = "re:";
constexpr std::string_view kLinear = "Linear";
constexpr std::size_t kMostExpressions = 4096;  // of all lists
constexpr std::chrono::seconds kLongest{5};     // of all matches, and of reading the expressions

// By the habits of Python: modules have names in small letters.
bool is_class(std::string_view target) {
  return !target.empty() && target.front() >= 'A' && target.front() <= 'Z' &&
         target.find('.') == std::string_view::npos;
}

}  // namespace

ModuleNames::Match ModuleNames::match(const Value::Array& list, const std::string& module) {
  const Targets& targets = targets_of(list);
  if (const auto name = targets.names.find(module); name != targets.names.end()) return {Naming::by_name, *name};
  for (const Expression& expression : targets.expressions) {
    if (matches(expression, module)) return {Naming::by_expression, expression.target};
  }
  if (!targets.linear.empty()) return {Naming::by_class, targets.linear};
  if (!targets.other_class.empty()) return {Naming::by_other_class, targets.other_class};
  return {};
}

const ModuleNames::Targets& ModuleNames::targets_of(const Value::Array& list) {
  if (const auto found = read_.find(&list); found != read_.end()) return found->second;
  Targets targets;
  for (const Value& value : list) {
    const auto* text = value.get_if<std::string>();
    if (text == nullptr) continue;
    if (text->starts_with(kExpression)) {
      targets.expressions.push_back(read(*text));
    } else if (*text == kLinear) {
      targets.linear = *text;
    } else if (is_class(*text)) {
      targets.other_class = *text;
    } else {
      targets.names.insert(*text);
    }
  }
  std::ranges::sort(targets.expressions, {}, &Expression::target);
  return read_.emplace(&list, std::move(targets)).first->second;
}

ModuleNames::Expression ModuleNames::read(std::string_view target) {
  if (++expressions_ > kMostExpressions)
    throw Error(ErrorKind::unsupported,
                fmt::format("quantization_config: more than {} regular expressions are not read", kMostExpressions));
  const auto start = Clock::now();
  auto regex = std::make_unique<const Regex>(target.substr(kExpression.size()), "quantization_config");
  auto matcher = std::make_unique<RegexMatcher>(*regex);
  spend(Clock::now() - start);
  return {target, std::move(regex), std::move(matcher)};
}

bool ModuleNames::matches(const Expression& expression, const std::string& module) {
  if (!is_utf8(module)) return false;
  const auto start = Clock::now();
  expression.matcher->allow(module.size());
  expression.matcher->begin(module);
  std::size_t begin = 0;
  std::size_t end = 0;
  // The first match is the one that begins first.
  const bool found = expression.matcher->next(begin, end) && begin == 0;
  spend(Clock::now() - start);
  return found;
}

void ModuleNames::spend(Clock::duration time) {
  spent_ += time;
  if (spent_ > kLongest)
    throw Error(ErrorKind::unsupported, "quantization_config: its regular expressions take too long");
}

}  // namespace poise
