// Defines the functions of Interpreter that evaluate expressions. interpreter.cpp has those that run statements.
#include <algorithm>

#include <fmt/format.h>

#include "jinja/interpreter.hpp"
#include "jinja/operators.hpp"

namespace poise::jinja {

Object Interpreter::evaluate(const Expression& expression, const ScopePtr& scope) {
  const Nesting nesting(*this);
  line_ = expression.line;
  switch (expression.kind) {
    case ExpressionKind::constant: return expression.value;
    case ExpressionKind::name: return evaluate_name(expression, scope);
    case ExpressionKind::member: break;
    case ExpressionKind::list:
    case ExpressionKind::tuple:
    case ExpressionKind::dict: return evaluate_container(expression, scope);
    case ExpressionKind::attribute:
    case ExpressionKind::item: {
      Object found = evaluate_access(expression, scope);
      check_usable(found);
      return found;
    }
    case ExpressionKind::slice: break;
    case ExpressionKind::call: return call(expression, scope);
    case ExpressionKind::filter: return evaluate_filter(expression, scope, nullptr);
    case ExpressionKind::test: return evaluate_test(expression, scope);
    case ExpressionKind::condition: return evaluate_condition(expression, scope);
    case ExpressionKind::logical_not: return !is_true(evaluate(*expression.operands[0], scope));
    case ExpressionKind::logical_and:
    case ExpressionKind::logical_or: return evaluate_logical(expression, scope);
    case ExpressionKind::negative:
    case ExpressionKind::positive:
      return apply_sign(evaluate(*expression.operands[0], scope), expression.kind == ExpressionKind::negative);
    case ExpressionKind::arithmetic: return evaluate_arithmetic(expression, scope);
    case ExpressionKind::concat: return evaluate_concat(expression, scope);
    case ExpressionKind::compare: return evaluate_comparison(expression, scope);
  }
  fail("a slice is allowed only between brackets");
}

Object Interpreter::evaluate_name(const Expression& expression, const ScopePtr& scope) {
  const Object* const found = scope->find(expression.name);
  if (found != nullptr) check_usable(*found);
  return found != nullptr ? *found : make_undefined(fmt::format("'{}' is undefined", expression.name));
}

Object Interpreter::evaluate_container(const Expression& expression, const ScopePtr& scope) {
  if (expression.kind == ExpressionKind::dict) {
    Dict dict;
    for (std::size_t i = 0; i + 1 < expression.operands.size(); i += 2) {
      Object key = evaluate(*expression.operands[i], scope);
      dict.set(budget_, std::move(key), evaluate(*expression.operands[i + 1], scope));
    }
    return make_dict(std::move(dict));
  }
  std::vector<Object> items;
  for (const ExpressionPtr& item : expression.operands) items.push_back(evaluate(*item, scope));
  return expression.kind == ExpressionKind::list ? make_list(budget_, std::move(items))
                                                 : make_tuple(budget_, std::move(items));
}

Object Interpreter::evaluate_access(const Expression& expression, const ScopePtr& scope) {
  const Object object = evaluate(*expression.operands[0], scope);
  if (expression.kind == ExpressionKind::attribute) {
    line_ = expression.line;
    return find_attribute(object, expression.name);
  }
  const Expression& key = *expression.operands[1];
  if (key.kind == ExpressionKind::slice) return evaluate_slice(object, key, scope);
  const Object index = evaluate(key, scope);
  line_ = expression.line;
  return find_item(object, index);
}

Object Interpreter::evaluate_slice(const Object& object, const Expression& expression, const ScopePtr& scope) {
  Object bounds[3] = {nullptr, nullptr, nullptr};
  for (std::size_t i = 0; i < 3; ++i) {
    if (expression.operands[i]) bounds[i] = evaluate(*expression.operands[i], scope);
  }
  line_ = expression.line;
  return slice_object(budget_, object, bounds[0], bounds[1], bounds[2]);
}

Parameters Interpreter::evaluate_arguments(const Arguments& arguments, const ScopePtr& scope) {
  std::vector<Object> positional;
  for (const ExpressionPtr& argument : arguments.positional) positional.push_back(evaluate(*argument, scope));
  Keywords keywords;
  for (const auto& [key, value] : arguments.keywords) keywords.emplace_back(Text{key}, evaluate(*value, scope));
  if (arguments.rest) {
    for (Object& item : read_items(budget_, evaluate(*arguments.rest, scope))) positional.push_back(std::move(item));
  }
  if (arguments.rest_keywords) {
    const Object rest = evaluate(*arguments.rest_keywords, scope);
    const auto* const dict = rest.get_if<DictPtr>();
    if (dict == nullptr) fail(fmt::format("the argument after ** is a {}, expected a mapping", get_type_name(rest)));
    for (const auto& [key, value] : (*dict)->entries()) {
      if (key.text() == nullptr) fail("keywords must be strings");
      keywords.emplace_back(*key.text(), value);
    }
  }
  return {std::move(positional), std::move(keywords)};
}

Object Interpreter::call(const Expression& expression, const ScopePtr& scope) {
  const Object callee = evaluate(*expression.operands[0], scope);
  Parameters given = evaluate_arguments(expression.arguments, scope);
  line_ = expression.line;
  return call(callee, given);
}

Object Interpreter::call(const Object& callee, Parameters& given) {
  if (callee.is_undefined()) fail_undefined(callee);
  const auto* const thing = callee.get_if<ThingPtr>();
  if (thing == nullptr) fail(fmt::format("'{}' object is not callable", get_type_name(callee)));
  const ThingPtr kept = *thing;
  Object result = kept->call(*this, given);
  given.check_all_read();
  return result;
}

Object Interpreter::evaluate_filter(const Expression& expression, const ScopePtr& scope, const Object* block) {
  const ExpressionPtr& operand = expression.operands[0];
  Object value;
  if (!operand) {
    if (block == nullptr) fail("a filter needs a value in front of it");
    value = *block;
  } else {
    value = operand->kind == ExpressionKind::filter && block != nullptr ? evaluate_filter(*operand, scope, block)
                                                                        : evaluate(*operand, scope);
  }
  Parameters given = evaluate_arguments(expression.arguments, scope);
  line_ = expression.line;
  return apply_filter(expression.name, value, given);
}

bool Interpreter::evaluate_test(const Expression& expression, const ScopePtr& scope) {
  const Object value = evaluate(*expression.operands[0], scope);
  Parameters given = evaluate_arguments(expression.arguments, scope);
  line_ = expression.line;
  return apply_test(expression.name, value, given);
}

Object Interpreter::evaluate_condition(const Expression& expression, const ScopePtr& scope) {
  if (is_true(evaluate(*expression.operands[0], scope))) return evaluate(*expression.operands[1], scope);
  if (expression.operands[2]) return evaluate(*expression.operands[2], scope);
  return make_undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.", expression.line));
}

Object Interpreter::evaluate_logical(const Expression& expression, const ScopePtr& scope) {
  Object left = evaluate(*expression.operands[0], scope);
  const bool decides = is_true(left) == (expression.kind == ExpressionKind::logical_or);
  return decides ? left : evaluate(*expression.operands[1], scope);
}

Object Interpreter::evaluate_arithmetic(const Expression& expression, const ScopePtr& scope) {
  const Object left = evaluate(*expression.operands[0], scope);
  const Object right = evaluate(*expression.operands[1], scope);
  line_ = expression.line;
  return compute(*this, expression.name, left, right);
}

Object Interpreter::evaluate_concat(const Expression& expression, const ScopePtr& scope) {
  Text all;
  for (const ExpressionPtr& operand : expression.operands) append(all, to_text(budget_, evaluate(*operand, scope)));
  budget_.charge(all.size());
  return all;
}

bool Interpreter::evaluate_comparison(const Expression& expression, const ScopePtr& scope) {
  Object left = evaluate(*expression.operands[0], scope);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    Object right = evaluate(*expression.operands[i + 1], scope);
    line_ = expression.line;
    const std::string& sign = expression.operators[i];
    const bool holds = sign == "in" || sign == "not in" ? contains(right, left) == (sign == "in")
                                                        : compare(budget_, sign, left, right);
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

bool Interpreter::contains(const Object& container, const Object& value) {
  if (const Text* const text = container.text()) {
    if (value.text() == nullptr)
      fail(fmt::format("'in <string>' requires string as left operand, not {}", get_type_name(value)));
    budget_.step(text->size() / 16);
    return text->bytes.find(value.text()->bytes) != std::string::npos;
  }
  if (const auto* dict = container.get_if<DictPtr>()) return (*dict)->find(budget_, value) != nullptr;
  if (const auto* view = container.get_if<DictView>(); view != nullptr && view->of == DictView::Of::keys)
    return view->dict->find(budget_, value) != nullptr;
  if (const auto* sequence = container.sequence()) {
    return std::ranges::any_of(*sequence, [&](const Object& item) { return are_equal(budget_, item, value); });
  }
  if (is_iterator(container)) {
    while (const auto item = pop_item(budget_, container)) {
      if (are_equal(budget_, *item, value)) return true;
    }
    return false;
  }
  if (!is_iterable(container)) fail(fmt::format("argument of type '{}' is not iterable", get_type_name(container)));
  const std::vector<Object> items = read_items(budget_, container);
  return std::ranges::any_of(items, [&](const Object& item) { return are_equal(budget_, item, value); });
}

}  // namespace poise::jinja
