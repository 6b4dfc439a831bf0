// The parser: turns a template's tokens into a tree.
#pragma once

#include <string_view>

#include "jinja/lexer.hpp"
#include "jinja/syntax_tree.hpp"

namespace poise::jinja {

// Throws SyntaxFailure. Requires: UTF-8.
Body parse(std::string_view source);

// Parses expressions by the precedence of their operators.

inline constexpr unsigned kMaxSyntaxDepth = 100;

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : in_(tokens) {}

  ExpressionPtr expression();
  // The same without "a if b else c" at the top: the "if" may belong to a statement.
  ExpressionPtr expression_without_condition() { return logical_or(); }

  enum class Items { any, without_condition, targets };
  // One expression, or a tuple of several, separated by commas. `end`: a name that ends it.
  ExpressionPtr tuple(Items items = Items::any, std::string_view end = {}, bool in_brackets = false);
  // Returns the target of an assignment or a loop.
  ExpressionPtr target(bool with_members, std::string_view end = {});
  // "name(...) | name" after a block's name. Null operand: the block's text. Null if there is none.
  ExpressionPtr filters_of_block(bool begins);

 private:
  struct Nested;

  ExpressionPtr condition();
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr compare();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr primary(bool with_members = false);
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr of);
  ExpressionPtr filters_and_tests(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  ExpressionPtr subscribed();
  ExpressionPtr call(ExpressionPtr of);
  ExpressionPtr filter(ExpressionPtr of);
  ExpressionPtr test(ExpressionPtr of);
  Arguments arguments();
  std::string dotted_name(std::string_view what);

  Expression node(ExpressionKind kind) const;
  ExpressionPtr finished(Expression expression) const;
  ExpressionPtr binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right, std::string name = {});
  bool is_tuple_end(std::string_view end) const;

  TokenStream& in_;
  unsigned depth_ = 0;
};

}  // namespace poise::jinja
