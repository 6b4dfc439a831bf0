#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "jinja/parser.hpp"

namespace poise::jinja {

// Counts how deep expressions nest.
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

Expression ExpressionParser::node(ExpressionKind kind) const {
  Expression expression;
  expression.kind = kind;
  expression.line = in_.current().line;
  return expression;
}

ExpressionPtr ExpressionParser::finished(Expression expression) const {
  unsigned deepest = 0;
  const auto look = [&](const ExpressionPtr& part) {
    if (part) deepest = std::max(deepest, part->depth);
  };
  std::ranges::for_each(expression.operands, look);
  std::ranges::for_each(expression.arguments.positional, look);
  for (const auto& [name, value] : expression.arguments.keywords) look(value);
  look(expression.arguments.rest);
  look(expression.arguments.rest_keywords);
  if (deepest >= 2 * kMaxSyntaxDepth) in_.refuse("an expression has too many operators in a row");
  expression.depth = deepest + 1;
  return std::make_unique<const Expression>(std::move(expression));
}

ExpressionPtr ExpressionParser::binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right, std::string name) {
  Expression operation = node(kind);
  operation.line = left->line;
  operation.name = std::move(name);
  operation.operands.push_back(std::move(left));
  operation.operands.push_back(std::move(right));
  return finished(std::move(operation));
}

ExpressionPtr ExpressionParser::expression() {
  const Nested nested(*this);
  return condition();
}

ExpressionPtr ExpressionParser::condition() {
  ExpressionPtr value = logical_or();
  while (in_.skip_name("if")) {
    Expression choice = node(ExpressionKind::condition);
    choice.operands.push_back(logical_or());
    choice.operands.push_back(std::move(value));
    choice.operands.push_back(in_.skip_name("else") ? expression() : nullptr);
    value = finished(std::move(choice));
  }
  return value;
}

ExpressionPtr ExpressionParser::logical_or() {
  ExpressionPtr left = logical_and();
  while (in_.skip_name("or")) left = binary(ExpressionKind::logical_or, std::move(left), logical_and());
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  ExpressionPtr left = logical_not();
  while (in_.skip_name("and")) left = binary(ExpressionKind::logical_and, std::move(left), logical_not());
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!in_.is_name("not")) return compare();
  const Nested nested(*this);
  Expression negated = node(ExpressionKind::logical_not);
  in_.next();
  negated.operands.push_back(logical_not());
  return finished(std::move(negated));
}

ExpressionPtr ExpressionParser::compare() {
  static constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<", "<=", ">", ">="};
  Expression chain = node(ExpressionKind::compare);
  chain.operands.push_back(sum());
  while (true) {
    if (in_.is(TokenKind::symbol) && std::ranges::find(kOperators, in_.current().text) != kOperators.end()) {
      chain.operators.push_back(in_.next().text);
    } else if (in_.skip_name("in")) {
      chain.operators.emplace_back("in");
    } else if (in_.is_name("not") && in_.look().kind == TokenKind::name && in_.look().text == "in") {
      in_.next();
      in_.next();
      chain.operators.emplace_back("not in");
    } else {
      break;
    }
    chain.operands.push_back(sum());
  }
  return chain.operators.empty() ? std::move(chain.operands.front()) : finished(std::move(chain));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concat();
  while (in_.is_symbol("+") || in_.is_symbol("-")) {
    std::string name = in_.next().text;
    left = binary(ExpressionKind::arithmetic, std::move(left), concat(), std::move(name));
  }
  return left;
}

ExpressionPtr ExpressionParser::concat() {
  Expression all = node(ExpressionKind::concat);
  all.operands.push_back(product());
  while (in_.skip_symbol("~")) all.operands.push_back(product());
  return all.operands.size() == 1 ? std::move(all.operands.front()) : finished(std::move(all));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  while (in_.is_symbol("*") || in_.is_symbol("/") || in_.is_symbol("//") || in_.is_symbol("%")) {
    std::string name = in_.next().text;
    left = binary(ExpressionKind::arithmetic, std::move(left), power(), std::move(name));
  }
  return left;
}

// Left to right, as in Jinja.
ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary();
  while (in_.skip_symbol("**")) left = binary(ExpressionKind::arithmetic, std::move(left), unary(), "**");
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  ExpressionPtr value;
  if (in_.is_symbol("-") || in_.is_symbol("+")) {
    const Nested nested(*this);
    Expression signed_value = node(in_.is_symbol("-") ? ExpressionKind::negative : ExpressionKind::positive);
    in_.next();
    signed_value.operands.push_back(unary(false));
    value = finished(std::move(signed_value));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary(bool with_members) {
  const Nested nested(*this);
  Expression value = node(ExpressionKind::constant);
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
      return finished(std::move(value));
    case TokenKind::string: {
      std::string text = in_.next().text;
      while (in_.is(TokenKind::string)) text += in_.next().text;
      value.value = Text{std::move(text)};
      return finished(std::move(value));
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
      return finished(std::move(value));
    }
    case TokenKind::floating: value.value = parse_double(in_.next().text).value(); return finished(std::move(value));
    default: break;
  }
  if (in_.skip_symbol("(")) {
    ExpressionPtr inner = tuple(Items::any, {}, true);
    in_.expect_symbol(")");
    return inner;
  }
  if (in_.is_symbol("[")) return list();
  if (in_.is_symbol("{")) return dict();
  in_.refuse("unexpected " + in_.described());
}

ExpressionPtr ExpressionParser::list() {
  Expression all = node(ExpressionKind::list);
  in_.expect_symbol("[");
  while (!in_.is_symbol("]")) {
    if (!all.operands.empty()) in_.expect_symbol(",");
    if (in_.is_symbol("]")) break;
    all.operands.push_back(expression());
  }
  in_.expect_symbol("]");
  return finished(std::move(all));
}

ExpressionPtr ExpressionParser::dict() {
  Expression all = node(ExpressionKind::dict);
  in_.expect_symbol("{");
  while (!in_.is_symbol("}")) {
    if (!all.operands.empty()) in_.expect_symbol(",");
    if (in_.is_symbol("}")) break;
    all.operands.push_back(expression());
    in_.expect_symbol(":");
    all.operands.push_back(expression());
  }
  in_.expect_symbol("}");
  return finished(std::move(all));
}

bool ExpressionParser::is_tuple_end(std::string_view end) const {
  return in_.is(TokenKind::variable_end) || in_.is(TokenKind::block_end) || in_.is_symbol(")") ||
         (!end.empty() && in_.is_name(end));
}

ExpressionPtr ExpressionParser::tuple(Items items, std::string_view end, bool in_brackets) {
  Expression all = node(ExpressionKind::tuple);
  bool is_tuple = false;
  while (true) {
    if (!all.operands.empty()) in_.expect_symbol(",");
    if (is_tuple_end(end)) break;
    all.operands.push_back(items == Items::targets             ? primary(true)
                           : items == Items::without_condition ? expression_without_condition()
                                                               : expression());
    if (!in_.is_symbol(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return finished(std::move(all));
  if (!all.operands.empty()) return std::move(all.operands.front());
  if (!in_brackets) in_.refuse("expected an expression, found " + in_.described());
  return finished(std::move(all));
}

namespace {

// Returns the part that cannot be assigned to, or null.
const Expression* unassignable(const Expression& target, bool with_members) {
  if (target.kind == ExpressionKind::name) return nullptr;
  if (target.kind == ExpressionKind::member) return with_members ? nullptr : &target;
  if (target.kind != ExpressionKind::tuple) return &target;
  for (const ExpressionPtr& part : target.operands) {
    if (const Expression* const found = unassignable(*part, with_members)) return found;
  }
  return nullptr;
}

}  // namespace

ExpressionPtr ExpressionParser::target(bool with_members, std::string_view end) {
  ExpressionPtr to = tuple(Items::targets, end);
  if (unassignable(*to, with_members) != nullptr) in_.refuse("only names can be assigned to");
  return to;
}

// The part of the expression parser for suffixes: attributes, items, calls, filters and tests.

ExpressionPtr ExpressionParser::postfix(ExpressionPtr of) {
  while (true) {
    if (in_.is_symbol(".") || in_.is_symbol("[")) {
      of = subscript(std::move(of));
    } else if (in_.is_symbol("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr of) {
  while (true) {
    if (in_.skip_symbol("|")) {
      of = filter(std::move(of));
    } else if (in_.skip_name("is")) {
      of = test(std::move(of));
    } else if (in_.is_symbol("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr of) {
  Expression access = node(ExpressionKind::item);
  access.operands.push_back(std::move(of));
  if (in_.skip_symbol(".")) {
    if (in_.is(TokenKind::name)) {
      access.kind = ExpressionKind::attribute;
      access.name = in_.next().text;
    } else {
      if (!in_.is(TokenKind::integer)) in_.refuse("expected a name or a number, found " + in_.described());
      access.operands.push_back(primary());
    }
    return finished(std::move(access));
  }
  in_.expect_symbol("[");
  Expression several = node(ExpressionKind::tuple);
  while (!in_.is_symbol("]")) {
    if (!several.operands.empty()) in_.expect_symbol(",");
    several.operands.push_back(subscribed());
  }
  in_.expect_symbol("]");
  access.operands.push_back(several.operands.size() == 1 ? std::move(several.operands.front())
                                                         : finished(std::move(several)));
  return finished(std::move(access));
}

// Returns the content of the brackets: an expression or a slice.
ExpressionPtr ExpressionParser::subscribed() {
  Expression slice = node(ExpressionKind::slice);
  if (in_.skip_symbol(":")) {
    slice.operands.push_back(nullptr);
  } else {
    ExpressionPtr index = expression();
    if (!in_.skip_symbol(":")) return index;
    slice.operands.push_back(std::move(index));
  }
  const auto ends = [&] { return in_.is_symbol("]") || in_.is_symbol(","); };
  slice.operands.push_back(in_.is_symbol(":") || ends() ? nullptr : expression());
  const bool has_step = in_.skip_symbol(":");
  slice.operands.push_back(has_step && !ends() ? expression() : nullptr);
  return finished(std::move(slice));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr of) {
  Expression result = node(ExpressionKind::call);
  result.operands.push_back(std::move(of));
  result.arguments = arguments();
  return finished(std::move(result));
}

Arguments ExpressionParser::arguments() {
  Arguments all;
  std::set<std::string> names;
  const auto require = [&](bool is_right) {
    if (!is_right) in_.refuse("the arguments of a call are in a wrong order");
  };
  in_.expect_symbol("(");
  for (bool first = true; !in_.is_symbol(")"); first = false) {
    if (!first) {
      in_.expect_symbol(",");
      if (in_.is_symbol(")")) break;
    }
    if (in_.skip_symbol("*")) {
      require(!all.rest && !all.rest_keywords);
      all.rest = expression();
    } else if (in_.skip_symbol("**")) {
      require(!all.rest_keywords);
      all.rest_keywords = expression();
    } else if (in_.is(TokenKind::name) && in_.look().kind == TokenKind::symbol && in_.look().text == "=") {
      require(!all.rest_keywords);
      if (!names.insert(in_.current().text).second)
        in_.refuse(fmt::format("the argument '{}' is given twice", in_.current().text));
      std::string name = in_.next().text;
      in_.next();
      all.keywords.emplace_back(std::move(name), expression());
    } else {
      require(!all.rest && !all.rest_keywords && all.keywords.empty());
      all.positional.push_back(expression());
    }
  }
  in_.expect_symbol(")");
  return all;
}

std::string ExpressionParser::dotted_name(std::string_view what) {
  std::string name = in_.expect(TokenKind::name, what).text;
  while (in_.skip_symbol(".")) name += "." + in_.expect(TokenKind::name, what).text;
  return name;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr of) {
  Expression result = node(ExpressionKind::filter);
  result.name = dotted_name("the name of a filter");
  result.operands.push_back(std::move(of));
  if (in_.is_symbol("(")) result.arguments = arguments();
  return finished(std::move(result));
}

ExpressionPtr ExpressionParser::filters_of_block(bool begins) {
  if (!begins && !in_.skip_symbol("|")) return nullptr;
  ExpressionPtr all = filter(nullptr);
  while (in_.skip_symbol("|")) all = filter(std::move(all));
  return all;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr of) {
  Expression result = node(ExpressionKind::test);
  const bool is_negated = in_.skip_name("not");
  result.name = dotted_name("the name of a test");
  result.operands.push_back(std::move(of));
  const bool has_value = in_.is(TokenKind::name) || in_.is(TokenKind::string) || in_.is(TokenKind::integer) ||
                         in_.is(TokenKind::floating) || in_.is_symbol("[") || in_.is_symbol("{");
  if (in_.is_symbol("(")) {
    result.arguments = arguments();
  } else if (has_value && !in_.is_any_name({"else", "or", "and"})) {
    if (in_.is_name("is")) in_.refuse("tests cannot follow each other");
    result.arguments.positional.push_back(postfix(primary()));
  }
  ExpressionPtr tested = finished(std::move(result));
  if (!is_negated) return tested;
  Expression negated = node(ExpressionKind::logical_not);
  negated.operands.push_back(std::move(tested));
  return finished(std::move(negated));
}

}  // namespace poise::jinja
