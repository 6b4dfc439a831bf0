// The part of the expression parser for suffixes: attributes, items, calls, filters and tests.
#include <set>
#include <string>

#include <fmt/format.h>

#include "jinja/expression_parser.hpp"

namespace poise::jinja {

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

// The content of the brackets: an expression or a slice.
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
