#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "jinja/parser.hpp"

namespace poise::jinja {

// Counts one level of nested expressions while it exists.
struct ExpressionParser::Nested {
  explicit Nested(ExpressionParser& parser) : depth(parser.depth_) {
    if (depth >= kMaxSyntaxDepth) parser.in_.refuse("expressions are nested too deeply");
    ++depth;
  }
  ~Nested() { --depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  unsigned& depth;
};

Expression ExpressionParser::make_node(ExpressionKind kind) const {
  Expression expression;
  expression.kind = kind;
  expression.line = in_.current().line;
  return expression;
}

ExpressionPtr ExpressionParser::finish_node(Expression expression) const {
  unsigned deepest = 0;
  for_each_part(expression, [&](const Expression& part) { deepest = std::max(deepest, part.depth); });
  if (deepest >= 2 * kMaxSyntaxDepth) in_.refuse("an expression has too many operators in a row");
  expression.depth = deepest + 1;
  return std::make_unique<const Expression>(std::move(expression));
}

ExpressionPtr ExpressionParser::make_binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right,
                                            std::string name) {
  Expression operation = make_node(kind);
  operation.line = left->line;
  operation.name = std::move(name);
  operation.operands.push_back(std::move(left));
  operation.operands.push_back(std::move(right));
  return finish_node(std::move(operation));
}

ExpressionPtr ExpressionParser::parse_expression() {
  const Nested nested(*this);
  return parse_condition();
}

ExpressionPtr ExpressionParser::parse_condition() {
  ExpressionPtr value = parse_or();
  while (in_.skip_name("if")) {
    Expression choice = make_node(ExpressionKind::condition);
    choice.operands.push_back(parse_or());
    choice.operands.push_back(std::move(value));
    choice.operands.push_back(in_.skip_name("else") ? parse_expression() : nullptr);
    value = finish_node(std::move(choice));
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (in_.skip_name("or")) left = make_binary(ExpressionKind::logical_or, std::move(left), parse_and());
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (in_.skip_name("and")) left = make_binary(ExpressionKind::logical_and, std::move(left), parse_not());
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!in_.is_name("not")) return parse_comparison();
  const Nested nested(*this);
  Expression negated = make_node(ExpressionKind::logical_not);
  in_.next();
  negated.operands.push_back(parse_not());
  return finish_node(std::move(negated));
}

ExpressionPtr ExpressionParser::parse_comparison() {
  static constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<", "<=", ">", ">="};
  Expression chain = make_node(ExpressionKind::compare);
  chain.operands.push_back(parse_sum());
  while (true) {
    if (in_.is(TokenKind::symbol) && std::ranges::find(kOperators, in_.current().text) != kOperators.end()) {
      chain.operators.push_back(in_.next().text);
    } else if (in_.skip_name("in")) {
      chain.operators.emplace_back("in");
    } else if (in_.is_name("not") && in_.peek().kind == TokenKind::name && in_.peek().text == "in") {
      in_.next();
      in_.next();
      chain.operators.emplace_back("not in");
    } else {
      break;
    }
    chain.operands.push_back(parse_sum());
  }
  return chain.operators.empty() ? std::move(chain.operands.front()) : finish_node(std::move(chain));
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concat();
  while (in_.is_symbol("+") || in_.is_symbol("-")) {
    std::string name = in_.next().text;
    left = make_binary(ExpressionKind::arithmetic, std::move(left), parse_concat(), std::move(name));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concat() {
  Expression all = make_node(ExpressionKind::concat);
  all.operands.push_back(parse_product());
  while (in_.skip_symbol("~")) all.operands.push_back(parse_product());
  return all.operands.size() == 1 ? std::move(all.operands.front()) : finish_node(std::move(all));
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr left = parse_power();
  while (in_.is_symbol("*") || in_.is_symbol("/") || in_.is_symbol("//") || in_.is_symbol("%")) {
    std::string name = in_.next().text;
    left = make_binary(ExpressionKind::arithmetic, std::move(left), parse_power(), std::move(name));
  }
  return left;
}

// Parses powers, which associate from left to right, as in Jinja.
ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (in_.skip_symbol("**")) left = make_binary(ExpressionKind::arithmetic, std::move(left), parse_unary(), "**");
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  ExpressionPtr value;
  if (in_.is_symbol("-") || in_.is_symbol("+")) {
    const Nested nested(*this);
    Expression signed_value = make_node(in_.is_symbol("-") ? ExpressionKind::negative : ExpressionKind::positive);
    in_.next();
    signed_value.operands.push_back(parse_unary(false));
    value = finish_node(std::move(signed_value));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::parse_primary(bool with_members) {
  const Nested nested(*this);
  Expression value = make_node(ExpressionKind::constant);
  const Token& token = in_.current();
  switch (token.kind) {
    case TokenKind::name:
      value.name = in_.next().text;
      if (value.name == "true" || value.name == "True") {
        value.value = true;
      } else if (value.name == "false" || value.name == "False") {
        value.value = false;
      } else if (value.name == "none" || value.name == "None") {
        value.value = nullptr;
      } else if (with_members && in_.skip_symbol(".")) {
        value.kind = ExpressionKind::member;
        value.text = in_.expect(TokenKind::name, "a name").text;
      } else {
        value.kind = ExpressionKind::name;
      }
      return finish_node(std::move(value));
    case TokenKind::string: {
      std::string text = in_.next().text;
      while (in_.is(TokenKind::string)) text += in_.next().text;
      value.value = Text{std::move(text)};
      return finish_node(std::move(value));
    }
    case TokenKind::integer: {
      const std::string text = token.text;
      const bool has_prefix = text.size() > 2 && text[0] == '0' && text[1] > '9';
      const int base = !has_prefix ? 10 : (text[1] | 0x20) == 'x' ? 16 : (text[1] | 0x20) == 'o' ? 8 : 2;
      std::int64_t number = 0;
      const auto read = std::from_chars(text.data() + (has_prefix ? 2 : 0), text.data() + text.size(), number, base);
      if (read.ec != std::errc()) in_.refuse(fmt::format("the integer {} is too large", text));
      in_.next();
      value.value = number;
      return finish_node(std::move(value));
    }
    case TokenKind::floating: value.value = parse_double(in_.next().text).value(); return finish_node(std::move(value));
    default: break;
  }
  if (in_.skip_symbol("(")) {
    ExpressionPtr inner = parse_tuple(Items::any, {}, true);
    in_.expect_symbol(")");
    return inner;
  }
  if (in_.is_symbol("[")) return parse_list();
  if (in_.is_symbol("{")) return parse_dict();
  in_.refuse("unexpected " + in_.describe());
}

ExpressionPtr ExpressionParser::parse_list() {
  Expression all = make_node(ExpressionKind::list);
  in_.expect_symbol("[");
  while (!in_.is_symbol("]")) {
    if (!all.operands.empty()) in_.expect_symbol(",");
    if (in_.is_symbol("]")) break;
    all.operands.push_back(parse_expression());
  }
  in_.expect_symbol("]");
  return finish_node(std::move(all));
}

ExpressionPtr ExpressionParser::parse_dict() {
  Expression all = make_node(ExpressionKind::dict);
  in_.expect_symbol("{");
  while (!in_.is_symbol("}")) {
    if (!all.operands.empty()) in_.expect_symbol(",");
    if (in_.is_symbol("}")) break;
    all.operands.push_back(parse_expression());
    in_.expect_symbol(":");
    all.operands.push_back(parse_expression());
  }
  in_.expect_symbol("}");
  return finish_node(std::move(all));
}

bool ExpressionParser::is_tuple_end(std::string_view end) const {
  return in_.is(TokenKind::variable_end) || in_.is(TokenKind::block_end) || in_.is_symbol(")") ||
         (!end.empty() && in_.is_name(end));
}

ExpressionPtr ExpressionParser::parse_tuple(Items items, std::string_view end, bool in_brackets) {
  Expression all = make_node(ExpressionKind::tuple);
  bool is_tuple = false;
  while (true) {
    if (!all.operands.empty()) in_.expect_symbol(",");
    if (is_tuple_end(end)) break;
    all.operands.push_back(items == Items::targets             ? parse_primary(true)
                           : items == Items::without_condition ? parse_or()
                                                               : parse_expression());
    if (!in_.is_symbol(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return finish_node(std::move(all));
  if (!all.operands.empty()) return std::move(all.operands.front());
  if (!in_brackets) in_.refuse("expected an expression, found " + in_.describe());
  return finish_node(std::move(all));
}

namespace {

// Returns the part of a target that cannot be assigned to; null if there is none.
const Expression* find_unassignable(const Expression& target, bool with_members) {
  if (target.kind == ExpressionKind::name) return nullptr;
  if (target.kind == ExpressionKind::member) return with_members ? nullptr : &target;
  if (target.kind != ExpressionKind::tuple) return &target;
  for (const ExpressionPtr& part : target.operands) {
    if (const Expression* const found = find_unassignable(*part, with_members)) return found;
  }
  return nullptr;
}

}  // namespace

ExpressionPtr ExpressionParser::parse_target(bool with_members, std::string_view end) {
  ExpressionPtr to = parse_tuple(Items::targets, end);
  if (find_unassignable(*to, with_members) != nullptr) in_.refuse("only names can be assigned to");
  return to;
}

// Attributes, items, calls, filters and tests are suffixes of an expression.

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr expression) {
  while (true) {
    if (in_.is_symbol(".") || in_.is_symbol("[")) {
      expression = parse_subscript(std::move(expression));
    } else if (in_.is_symbol("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr expression) {
  while (true) {
    if (in_.skip_symbol("|")) {
      expression = parse_filter(std::move(expression));
    } else if (in_.skip_name("is")) {
      expression = parse_test(std::move(expression));
    } else if (in_.is_symbol("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr expression) {
  Expression access = make_node(ExpressionKind::item);
  access.operands.push_back(std::move(expression));
  if (in_.skip_symbol(".")) {
    if (in_.is(TokenKind::name)) {
      access.kind = ExpressionKind::attribute;
      access.name = in_.next().text;
    } else {
      if (!in_.is(TokenKind::integer)) in_.refuse("expected a name or a number, found " + in_.describe());
      access.operands.push_back(parse_primary());
    }
    return finish_node(std::move(access));
  }
  in_.expect_symbol("[");
  Expression several = make_node(ExpressionKind::tuple);
  while (!in_.is_symbol("]")) {
    if (!several.operands.empty()) in_.expect_symbol(",");
    several.operands.push_back(parse_subscript_content());
  }
  in_.expect_symbol("]");
  access.operands.push_back(several.operands.size() == 1 ? std::move(several.operands.front())
                                                         : finish_node(std::move(several)));
  return finish_node(std::move(access));
}

// Parses one of the items between brackets: an expression or a slice.
ExpressionPtr ExpressionParser::parse_subscript_content() {
  Expression slice = make_node(ExpressionKind::slice);
  if (in_.skip_symbol(":")) {
    slice.operands.push_back(nullptr);
  } else {
    ExpressionPtr index = parse_expression();
    if (!in_.skip_symbol(":")) return index;
    slice.operands.push_back(std::move(index));
  }
  const auto is_at_end = [&] { return in_.is_symbol("]") || in_.is_symbol(","); };
  slice.operands.push_back(in_.is_symbol(":") || is_at_end() ? nullptr : parse_expression());
  const bool has_step = in_.skip_symbol(":");
  slice.operands.push_back(has_step && !is_at_end() ? parse_expression() : nullptr);
  return finish_node(std::move(slice));
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr expression) {
  Expression result = make_node(ExpressionKind::call);
  result.operands.push_back(std::move(expression));
  result.arguments = parse_arguments();
  return finish_node(std::move(result));
}

Arguments ExpressionParser::parse_arguments() {
  Arguments all;
  std::set<std::string> names;
  const auto check_order = [&](bool is_right) {
    if (!is_right)
      in_.refuse(
          "the arguments of a call are in a wrong order: expected positional ones, then name=value and *, then **");
  };
  in_.expect_symbol("(");
  for (bool first = true; !in_.is_symbol(")"); first = false) {
    if (!first) {
      in_.expect_symbol(",");
      if (in_.is_symbol(")")) break;
    }
    if (in_.skip_symbol("*")) {
      check_order(!all.rest && !all.rest_keywords);
      all.rest = parse_expression();
    } else if (in_.skip_symbol("**")) {
      check_order(!all.rest_keywords);
      all.rest_keywords = parse_expression();
    } else if (in_.is(TokenKind::name) && in_.peek().kind == TokenKind::symbol && in_.peek().text == "=") {
      check_order(!all.rest_keywords);
      if (!names.insert(in_.current().text).second)
        in_.refuse(fmt::format("the argument '{}' is given twice", in_.current().text));
      std::string name = in_.next().text;
      in_.next();
      all.keywords.emplace_back(std::move(name), parse_expression());
    } else {
      check_order(!all.rest && !all.rest_keywords && all.keywords.empty());
      all.positional.push_back(parse_expression());
    }
  }
  in_.expect_symbol(")");
  return all;
}

std::string ExpressionParser::parse_dotted_name(std::string_view what) {
  std::string name = in_.expect(TokenKind::name, what).text;
  while (in_.skip_symbol(".")) name += "." + in_.expect(TokenKind::name, what).text;
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr expression) {
  Expression result = make_node(ExpressionKind::filter);
  result.name = parse_dotted_name("the name of a filter");
  result.operands.push_back(std::move(expression));
  if (in_.is_symbol("(")) result.arguments = parse_arguments();
  return finish_node(std::move(result));
}

ExpressionPtr ExpressionParser::parse_block_filters(bool begins) {
  if (!begins && !in_.skip_symbol("|")) return nullptr;
  ExpressionPtr all = parse_filter(nullptr);
  while (in_.skip_symbol("|")) all = parse_filter(std::move(all));
  return all;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr expression) {
  Expression result = make_node(ExpressionKind::test);
  const bool is_negated = in_.skip_name("not");
  result.name = parse_dotted_name("the name of a test");
  result.operands.push_back(std::move(expression));
  const bool has_value = in_.is(TokenKind::name) || in_.is(TokenKind::string) || in_.is(TokenKind::integer) ||
                         in_.is(TokenKind::floating) || in_.is_symbol("[") || in_.is_symbol("{");
  if (in_.is_symbol("(")) {
    result.arguments = parse_arguments();
  } else if (has_value && !in_.is_any_name({"else", "or", "and"})) {
    if (in_.is_name("is")) in_.refuse("tests cannot follow each other");
    result.arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  ExpressionPtr tested = finish_node(std::move(result));
  if (!is_negated) return tested;
  Expression negated = make_node(ExpressionKind::logical_not);
  negated.operands.push_back(std::move(tested));
  return finish_node(std::move(negated));
}

}  // namespace poise::jinja
