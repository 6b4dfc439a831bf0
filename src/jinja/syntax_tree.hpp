// Declares the syntax tree of a template. The parser limits the tree's depth, so functions that walk over it may
// recurse.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/object.hpp"

namespace poise::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Arguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr rest = nullptr;           // *rest
  ExpressionPtr rest_keywords = nullptr;  // **rest
};

// Each note names the members of Expression that the kind uses, or writes the expression with them.
enum class ExpressionKind : unsigned char {
  constant,     // value
  name,         // name
  member,       // name.text, as the target of an assignment to a namespace
  list,         // operands
  tuple,        // operands
  dict,         // operands: key, value, key, value, ...
  attribute,    // operands[0].name
  item,         // operands[0][operands[1]]
  slice,        // operands: start, stop, step; null if omitted
  call,         // operands[0](arguments)
  filter,       // operands[0] | name(arguments); a null operand is a block's text
  test,         // operands[0] is name(arguments)
  condition,    // operands[1] if operands[0] else operands[2], which may be null
  logical_not,  // not operands[0]
  logical_and,
  logical_or,
  negative,
  positive,
  arithmetic,  // name: the operator
  concat,      // joins all operands as text
  compare,     // operands[0] operators[0] operands[1] operators[1] ...
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  std::size_t line = 1;
  std::string name = {};
  std::string text = {};
  Object value = {};
  std::vector<ExpressionPtr> operands = {};
  std::vector<std::string> operators = {};
  Arguments arguments = {};
  unsigned depth = 1;
};

// Calls visit(part) for each operand and argument of an expression.
template <typename Visit>
void for_each_part(const Expression& expression, Visit&& visit) {
  const auto visit_one = [&](const ExpressionPtr& part) {
    if (part) visit(*part);
  };
  for (const ExpressionPtr& operand : expression.operands) visit_one(operand);
  for (const ExpressionPtr& argument : expression.arguments.positional) visit_one(argument);
  for (const auto& [name, argument] : expression.arguments.keywords) visit_one(argument);
  visit_one(expression.arguments.rest);
  visit_one(expression.arguments.rest_keywords);
}

struct Statement;
using Body = std::vector<std::unique_ptr<const Statement>>;

struct Branch {
  ExpressionPtr test;  // null: else
  Body body;
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // null: undefined if not given
};

// Each note names the members of Statement that the kind uses, or the template's keywords.
enum class StatementKind : unsigned char {
  output,        // values
  loop,          // for target in value if test: body; otherwise
  branches,      // if, elif, else
  assign,        // set target = value
  assign_block,  // set target | value: body
  with,          // targets, values, body
  macro,         // name, parameters, body
  call_block,    // value: the call; parameters and body: of the function caller()
  filter_block,  // value: the filter; body
  scope,         // body in a scope of its own: block, generation
  end_loop,      // break
  next_item,     // continue
};

struct Statement {
  StatementKind kind = StatementKind::output;
  std::size_t line = 1;
  std::string name = {};
  ExpressionPtr target = {};
  ExpressionPtr value = {};
  ExpressionPtr test = {};
  bool is_recursive = false;
  // These state which of "caller", "kwargs" and "varargs" the body of a macro or call block uses.
  bool takes_caller = false;
  bool takes_keywords = false;
  bool takes_more = false;
  std::vector<ExpressionPtr> targets = {};
  std::vector<ExpressionPtr> values = {};
  std::vector<Parameter> parameters = {};
  std::vector<Branch> branches = {};
  Body body = {};
  Body otherwise = {};
};

}  // namespace poise::jinja
