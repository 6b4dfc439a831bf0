// The parser turns a template's tokens into a tree.
#pragma once

#include <string_view>

#include "jinja/lexer.hpp"
#include "jinja/syntax_tree.hpp"

namespace poise::jinja {

// Returns the statements of a template. Throws SyntaxFailure. Requires: UTF-8.
Body parse(std::string_view source);

inline constexpr unsigned kMaxSyntaxDepth = 100;

// Parses expressions by the precedence of their operators.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : in_(tokens) {}

  ExpressionPtr parse_expression();
  enum class Items { any, without_condition, targets };
  // Parses one expression, or several with commas between them as a tuple, up to the name `end`. The tuple may be
  // empty only with `in_brackets`.
  ExpressionPtr parse_tuple(Items items = Items::any, std::string_view end = {}, bool in_brackets = false);
  // Parses the target of an assignment or a loop. With `with_members`, it may be an attribute of a namespace.
  ExpressionPtr parse_target(bool with_members, std::string_view end = {});
  // Parses the filters of a block, "name(...) | name". The innermost operand is null: it stands for the block's text.
  // Without `begins`, "|" comes before the first filter; returns null if it is missing.
  ExpressionPtr parse_block_filters(bool begins);

 private:
  struct Nested;

  ExpressionPtr parse_condition();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_primary(bool with_members = false);
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr expression);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr expression);
  ExpressionPtr parse_subscript(ExpressionPtr expression);
  ExpressionPtr parse_subscript_content();
  ExpressionPtr parse_call(ExpressionPtr expression);
  ExpressionPtr parse_filter(ExpressionPtr expression);
  ExpressionPtr parse_test(ExpressionPtr expression);
  Arguments parse_arguments();
  std::string parse_dotted_name(std::string_view what);

  Expression make_node(ExpressionKind kind) const;
  ExpressionPtr finish_node(Expression expression) const;
  ExpressionPtr make_binary(ExpressionKind kind, ExpressionPtr left, ExpressionPtr right, std::string name = {});
  bool is_tuple_end(std::string_view end) const;

  TokenStream& in_;
  unsigned depth_ = 0;
};

}  // namespace poise::jinja
