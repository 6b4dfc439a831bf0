// The rules are those of idtracking.py in jinja2 3.1.6. Older versions differ if each branch of an `if` sets a name.
#include "jinja/scoping.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "jinja/filters.hpp"
#include "jinja/lexer.hpp"

namespace poise::jinja {

class ScopeSearch {
 public:
  explicit ScopeSearch(Scoping& result) : result_(result) {}

  void search(const Body& whole) {
    Level level{nullptr};
    search_scope(level, whole);
    if (has_blocks_) result_.unset_.clear();  // the search assumes that blocks see scopes around them, but they do not
  }

 private:
  using Name = std::string_view;
  enum class Start : unsigned char { outer, unset };

  // Holds a scope, and the names that it mentions outside of inner scopes.
  struct Level {
    const Level* parent;
    std::unordered_map<Name, Start> refs = {};
    unsigned branches = 0;  // the number of branches around the current statement
  };

  static bool is_known(const Level* level, Name name) {
    for (; level != nullptr; level = level->parent) {
      if (level->refs.contains(name)) return true;
    }
    return false;
  }
  static void record_use(Level& level, Name name) {
    if (!is_known(&level, name)) level.refs.emplace(name, Start::outer);
  }
  // A name that only a branch sets is not undefined at the beginning.
  static void record_assignment(Level& level, Name name) {
    if (level.refs.contains(name)) return;
    level.refs.emplace(name, level.branches > 0 || is_known(level.parent, name) ? Start::outer : Start::unset);
  }
  static void add_parameter(Level& level, Name parameter) { level.refs.emplace(parameter, Start::outer); }

  static void record_uses(Level& level, const std::vector<ExpressionPtr>& all) {
    for (const ExpressionPtr& expression : all) record_uses(level, expression);
  }
  static void record_uses(Level& level, const ExpressionPtr& expression) {
    if (expression) record_uses(level, *expression);
  }
  static void record_uses(Level& level, const Expression& expression) {
    if (expression.kind == ExpressionKind::name) record_use(level, expression.name);
    for_each_part(expression, [&](const Expression& part) { record_uses(level, part); });
  }

  template <typename Use>
  static void for_each_target(const Expression& target, Use&& use) {
    if (target.kind != ExpressionKind::tuple) return use(target);
    for (const ExpressionPtr& part : target.operands) for_each_target(*part, use);
  }
  static void record_assignments(Level& level, const Expression& target) {
    for_each_target(target, [&](const Expression& to) {
      to.kind == ExpressionKind::member ? record_use(level, to.name) : record_assignment(level, to.name);
    });
  }
  static void add_parameter(Level& level, const Expression& target) {
    for_each_target(target, [&](const Expression& to) { add_parameter(level, to.name); });
  }

  static void record_uses(Level& level, const Body& body) {
    for (const auto& statement : body) record_uses(level, *statement);
  }
  static void record_uses(Level& level, const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::branches:
        ++level.branches;
        for (const Branch& branch : statement.branches) {
          record_uses(level, branch.test);
          record_uses(level, branch.body);
        }
        --level.branches;
        return;
      case StatementKind::assign:
        record_uses(level, statement.value);
        return record_assignments(level, *statement.target);
      case StatementKind::assign_block: return record_assignments(level, *statement.target);
      case StatementKind::macro: return record_assignment(level, statement.name);
      case StatementKind::output:
      case StatementKind::with: return record_uses(level, statement.values);
      case StatementKind::loop:
      case StatementKind::call_block:
      case StatementKind::filter_block: return record_uses(level, statement.value);
      case StatementKind::scope:
      case StatementKind::end_loop:
      case StatementKind::next_item: return;
    }
  }

  void search_scope(Level& level, const Body& body) {
    record_uses(level, body);
    for (const auto& [name, start] : level.refs) {
      if (start == Start::unset)
        result_.unset_[&body].emplace_back(name, make_undefined(fmt::format("'{}' is undefined", name)));
    }
    search_statements(level, body);
  }

  void search_statements(const Level& level, const Body& body) {
    for (const auto& statement : body) search_statement(level, *statement);
  }

  // Searches the scopes that a statement opens, if any.
  void search_statement(const Level& level, const Statement& statement) {
    Level inner{&level};
    switch (statement.kind) {
      case StatementKind::branches:
        for (const Branch& branch : statement.branches) search_statements(level, branch.body);
        return;
      case StatementKind::loop: {
        add_parameter(inner, *statement.target);
        add_parameter(inner, "loop");
        search_scope(inner, statement.body);
        Level otherwise{&level};
        search_scope(otherwise, statement.otherwise);
        return;
      }
      case StatementKind::with:
        for (const ExpressionPtr& target : statement.targets) add_parameter(inner, *target);
        return search_scope(inner, statement.body);
      case StatementKind::macro:
      case StatementKind::call_block:
        for (const Parameter& parameter : statement.parameters) add_parameter(inner, parameter.name);
        for (const Parameter& parameter : statement.parameters) record_uses(inner, parameter.otherwise);
        return search_scope(inner, statement.body);
      case StatementKind::scope: has_blocks_ |= !statement.name.empty(); return search_scope(inner, statement.body);
      case StatementKind::assign_block:
      case StatementKind::filter_block: return search_scope(inner, statement.body);
      case StatementKind::output:
      case StatementKind::assign:
      case StatementKind::end_loop:
      case StatementKind::next_item: return;
    }
  }

  Scoping& result_;
  bool has_blocks_ = false;
};

Scoping::Scoping(const Body& whole) { ScopeSearch(*this).search(whole); }

namespace {

bool is_used_in(const Expression& expression, std::string_view name) {
  bool is_used = expression.kind == ExpressionKind::name && expression.name == name;
  for_each_part(expression, [&](const Expression& part) { is_used = is_used || is_used_in(part, name); });
  return is_used;
}

bool is_used_in(const Body& body, std::string_view name) {
  const auto is_in = [&](const ExpressionPtr& expression) { return expression && is_used_in(*expression, name); };
  const auto is_in_parameter = [&](const Parameter& parameter) { return is_in(parameter.otherwise); };
  const auto is_in_branch = [&](const Branch& branch) { return is_in(branch.test) || is_used_in(branch.body, name); };
  return std::ranges::any_of(body, [&](const auto& statement) {
    return is_in(statement->target) || is_in(statement->value) || is_in(statement->test) ||
           std::ranges::any_of(statement->targets, is_in) || std::ranges::any_of(statement->values, is_in) ||
           std::ranges::any_of(statement->parameters, is_in_parameter) ||
           std::ranges::any_of(statement->branches, is_in_branch) || is_used_in(statement->body, name) ||
           is_used_in(statement->otherwise, name);
  });
}

}  // namespace

bool uses_name(const Statement& macro, std::string_view name) { return is_used_in(macro.body, name); }

namespace {

// Distinguishes code in which an unknown filter or test is an error at once (hard) from code in which it is an error
// only when it runs (soft). As in jinja2's compiler, code inside a condition is soft, but the body of a loop, macro or
// block in it is hard again.
enum class Place { soft, hard };

void check_names(const Body& body, Place place);

void check_names(const Expression& expression, Place place) {
  if (place == Place::hard && expression.kind == ExpressionKind::filter && find_filter(expression.name) == nullptr)
    throw SyntaxFailure(fmt::format("there is no filter '{}'", expression.name), expression.line);
  if (place == Place::hard && expression.kind == ExpressionKind::test && find_test(expression.name) == nullptr)
    throw SyntaxFailure(fmt::format("there is no test '{}'", expression.name), expression.line);
  const Place inside = expression.kind == ExpressionKind::condition ? Place::soft : place;
  for_each_part(expression, [&](const Expression& part) { check_names(part, inside); });
}

void check_names(const ExpressionPtr& expression, Place place) {
  if (expression) check_names(*expression, place);
}

void check_names(const Statement& statement, Place place) {
  // jinja2 calls the filters of a block inside the block, so they are hard.
  const bool has_block_filter =
      statement.kind == StatementKind::filter_block || statement.kind == StatementKind::assign_block;
  check_names(statement.target, place);
  check_names(statement.value, has_block_filter ? Place::hard : place);
  check_names(statement.test, Place::hard);  // the condition of a loop
  for (const ExpressionPtr& value : statement.values) check_names(value, place);
  for (const Parameter& parameter : statement.parameters) check_names(parameter.otherwise, Place::hard);
  for (const Branch& branch : statement.branches) {
    check_names(branch.test, Place::soft);
    check_names(branch.body, Place::soft);
  }
  check_names(statement.body, Place::hard);
  check_names(statement.otherwise, Place::hard);
}

void check_names(const Body& body, Place place) {
  for (const auto& statement : body) check_names(*statement, place);
}

}  // namespace

void check_known_names(const Body& body) { check_names(body, Place::hard); }

}  // namespace poise::jinja
