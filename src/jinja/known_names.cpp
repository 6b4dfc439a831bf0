#include "jinja/known_names.hpp"

#include <fmt/format.h>

#include "jinja/filters.hpp"
#include "jinja/lexer.hpp"

namespace poise::jinja {
namespace {

// jinja2's compiler calls what is in a condition soft. Blocks in it that have their own names are not.
enum class Place { soft, hard };

void look(const Body& body, Place place);

void look(const ExpressionPtr& of, Place place) {
  if (!of) return;
  const bool is_filter = of->kind == ExpressionKind::filter;
  if (place == Place::hard && is_filter && filter_of(of->name) == nullptr)
    throw SyntaxFailure(fmt::format("there is no filter '{}'", of->name), of->line);
  if (place == Place::hard && of->kind == ExpressionKind::test && test_of(of->name) == nullptr)
    throw SyntaxFailure(fmt::format("there is no test '{}'", of->name), of->line);
  const Place inside = of->kind == ExpressionKind::condition ? Place::soft : place;
  for (const ExpressionPtr& operand : of->operands) look(operand, inside);
  for (const ExpressionPtr& argument : of->arguments.positional) look(argument, inside);
  for (const auto& [name, argument] : of->arguments.keywords) look(argument, inside);
  look(of->arguments.rest, inside);
  look(of->arguments.rest_keywords, inside);
}

void look(const Statement& of, Place place) {
  // The filters of blocks are called in the block.
  const bool has_block_filter = of.kind == StatementKind::filter_block || of.kind == StatementKind::assign_block;
  look(of.target, place);
  look(of.value, has_block_filter ? Place::hard : place);
  look(of.test, Place::hard);  // of a loop
  for (const ExpressionPtr& value : of.values) look(value, place);
  for (const Parameter& parameter : of.parameters) look(parameter.otherwise, Place::hard);
  for (const Branch& branch : of.branches) {
    look(branch.test, Place::soft);
    look(branch.body, Place::soft);
  }
  look(of.body, Place::hard);
  look(of.otherwise, Place::hard);
}

void look(const Body& body, Place place) {
  for (const auto& statement : body) look(*statement, place);
}

}  // namespace

void require_known_names(const Body& body) { look(body, Place::hard); }

}  // namespace poise::jinja
