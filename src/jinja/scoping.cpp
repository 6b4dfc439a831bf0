// The rules are those of jinja2/idtracking.py of jinja2 3.1.6. Older versions differ if each branch sets a name.
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
    if (has_blocks_) result_.unset_.clear();  // a block sees nothing of the scopes around it
  }

 private:
  using Name = std::string_view;
  enum class Start : unsigned char { outer, unset };

  // Holds a scope, and the names that it mentions outside of inner scopes.
  struct Level {
    const Level* parent;
    std::unordered_map<Name, Start> refs = {};
    unsigned branches = 0;  // how many contain the statement that is read
  };

  static bool is_known(const Level* level, Name name) {
    for (; level != nullptr; level = level->parent) {
      if (level->refs.contains(name)) return true;
    }
    return false;
  }
  static void read_name(Level& level, Name name) {
    if (!is_known(&level, name)) level.refs.emplace(name, Start::outer);
  }
  // Records that a statement sets a name. A name that only a branch sets is not undefined at the beginning.
  static void write_name(Level& level, Name name) {
    if (level.refs.contains(name)) return;
    level.refs.emplace(name, level.branches > 0 || is_known(level.parent, name) ? Start::outer : Start::unset);
  }
  static void add_parameter(Level& level, Name parameter) { level.refs.emplace(parameter, Start::outer); }

  static void read(Level& level, const std::vector<ExpressionPtr>& all) {
    for (const ExpressionPtr& expression : all) read(level, expression);
  }
  static void read(Level& level, const ExpressionPtr& of) {
    if (of) read(level, *of);
  }
  static void read(Level& level, const Expression& of) {
    if (of.kind == ExpressionKind::name) read_name(level, of.name);
    for_each_part(of, [&](const Expression& part) { read(level, part); });
  }

  template <typename Use>
  static void for_each_target(const Expression& target, Use&& use) {
    if (target.kind != ExpressionKind::tuple) return use(target);
    for (const ExpressionPtr& part : target.operands) for_each_target(*part, use);
  }
  static void write(Level& level, const Expression& target) {
    for_each_target(target, [&](const Expression& to) {
      to.kind == ExpressionKind::member ? read_name(level, to.name) : write_name(level, to.name);
    });
  }
  static void add_parameter(Level& level, const Expression& target) {
    for_each_target(target, [&](const Expression& to) { add_parameter(level, to.name); });
  }

  static void read(Level& level, const Body& body) {
    for (const auto& statement : body) read(level, *statement);
  }
  static void read(Level& level, const Statement& of) {
    switch (of.kind) {
      case StatementKind::branches:
        ++level.branches;
        for (const Branch& branch : of.branches) {
          read(level, branch.test);
          read(level, branch.body);
        }
        --level.branches;
        return;
      case StatementKind::assign: read(level, of.value); return write(level, *of.target);
      case StatementKind::assign_block: return write(level, *of.target);
      case StatementKind::macro: return write_name(level, of.name);
      case StatementKind::output:
      case StatementKind::with: return read(level, of.values);
      case StatementKind::loop:
      case StatementKind::call_block:
      case StatementKind::filter_block: return read(level, of.value);
      case StatementKind::scope:
      case StatementKind::end_loop:
      case StatementKind::next_item: return;
    }
  }

  void search_scope(Level& level, const Body& body) {
    read(level, body);
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
  void search_statement(const Level& level, const Statement& of) {
    Level inner{&level};
    switch (of.kind) {
      case StatementKind::branches:
        for (const Branch& branch : of.branches) search_statements(level, branch.body);
        return;
      case StatementKind::loop: {
        add_parameter(inner, *of.target);
        add_parameter(inner, "loop");
        search_scope(inner, of.body);
        Level otherwise{&level};
        search_scope(otherwise, of.otherwise);
        return;
      }
      case StatementKind::with:
        for (const ExpressionPtr& target : of.targets) add_parameter(inner, *target);
        return search_scope(inner, of.body);
      case StatementKind::macro:
      case StatementKind::call_block:
        for (const Parameter& parameter : of.parameters) add_parameter(inner, parameter.name);
        for (const Parameter& parameter : of.parameters) read(inner, parameter.otherwise);
        return search_scope(inner, of.body);
      case StatementKind::scope: has_blocks_ |= !of.name.empty(); return search_scope(inner, of.body);
      case StatementKind::assign_block:
      case StatementKind::filter_block: return search_scope(inner, of.body);
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

bool is_used_in(const Expression& of, std::string_view name) {
  bool is_used = of.kind == ExpressionKind::name && of.name == name;
  for_each_part(of, [&](const Expression& part) { is_used = is_used || is_used_in(part, name); });
  return is_used;
}

bool is_used_in(const Body& body, std::string_view name) {
  const auto is_in = [&](const ExpressionPtr& of) { return of && is_used_in(*of, name); };
  const auto is_in_parameter = [&](const Parameter& parameter) { return is_in(parameter.otherwise); };
  const auto is_in_branch = [&](const Branch& branch) { return is_in(branch.test) || is_used_in(branch.body, name); };
  return std::ranges::any_of(body, [&](const auto& of) {
    return is_in(of->target) || is_in(of->value) || is_in(of->test) || std::ranges::any_of(of->targets, is_in) ||
           std::ranges::any_of(of->values, is_in) || std::ranges::any_of(of->parameters, is_in_parameter) ||
           std::ranges::any_of(of->branches, is_in_branch) || is_used_in(of->body, name) ||
           is_used_in(of->otherwise, name);
  });
}

}  // namespace

bool uses_name(const Statement& macro, std::string_view name) { return is_used_in(macro.body, name); }

namespace {

// Says where code is. jinja2's compiler calls code inside a condition soft, except for blocks with names of their own.
enum class Place { soft, hard };

void check_names(const Body& body, Place place);

void check_names(const Expression& of, Place place) {
  if (place == Place::hard && of.kind == ExpressionKind::filter && find_filter(of.name) == nullptr)
    throw SyntaxFailure(fmt::format("there is no filter '{}'", of.name), of.line);
  if (place == Place::hard && of.kind == ExpressionKind::test && find_test(of.name) == nullptr)
    throw SyntaxFailure(fmt::format("there is no test '{}'", of.name), of.line);
  const Place inside = of.kind == ExpressionKind::condition ? Place::soft : place;
  for_each_part(of, [&](const Expression& part) { check_names(part, inside); });
}

void check_names(const ExpressionPtr& of, Place place) {
  if (of) check_names(*of, place);
}

void check_names(const Statement& of, Place place) {
  // jinja2 calls the filters of a block inside it.
  const bool has_block_filter = of.kind == StatementKind::filter_block || of.kind == StatementKind::assign_block;
  check_names(of.target, place);
  check_names(of.value, has_block_filter ? Place::hard : place);
  check_names(of.test, Place::hard);  // of a loop
  for (const ExpressionPtr& value : of.values) check_names(value, place);
  for (const Parameter& parameter : of.parameters) check_names(parameter.otherwise, Place::hard);
  for (const Branch& branch : of.branches) {
    check_names(branch.test, Place::soft);
    check_names(branch.body, Place::soft);
  }
  check_names(of.body, Place::hard);
  check_names(of.otherwise, Place::hard);
}

void check_names(const Body& body, Place place) {
  for (const auto& statement : body) check_names(*statement, place);
}

}  // namespace

void require_known_names(const Body& body) { check_names(body, Place::hard); }

}  // namespace poise::jinja
