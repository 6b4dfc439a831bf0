// The rules are those of jinja2/idtracking.py (jinja2 3.1.6; older ones differ where each branch sets a name).
#include "jinja/scoping.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "jinja/filters.hpp"
#include "jinja/lexer.hpp"

namespace poise::jinja {

class ScopeSearch {
 public:
  explicit ScopeSearch(Scoping& result) : result_(result) {}

  void run(const Body& whole) {
    Level level{nullptr};
    enter(level, whole);
    if (has_blocks_) result_.unset_.clear();  // a block sees nothing of the scopes around it
  }

 private:
  using Name = std::string_view;
  enum class Start : unsigned char { outer, unset };

  // Holds one scope with the names that it mentions itself.
  struct Level {
    const Level* parent;
    std::unordered_map<Name, Start> refs = {};
    unsigned branches = 0;  // around the statement that is read
  };

  static bool is_known(const Level* level, Name name) {
    for (; level != nullptr; level = level->parent) {
      if (level->refs.contains(name)) return true;
    }
    return false;
  }
  static void load(Level& level, Name name) {
    if (!is_known(&level, name)) level.refs.emplace(name, Start::outer);
  }
  // Stores a name. A name that only a branch sets is not the scope's own from the beginning.
  static void store(Level& level, Name name) {
    if (level.refs.contains(name)) return;
    level.refs.emplace(name, level.branches > 0 || is_known(level.parent, name) ? Start::outer : Start::unset);
  }
  static void take(Level& level, Name parameter) { level.refs.emplace(parameter, Start::outer); }

  static void read(Level& level, const std::vector<ExpressionPtr>& all) {
    for (const ExpressionPtr& expression : all) read(level, expression);
  }
  static void read(Level& level, const ExpressionPtr& of) {
    if (of) read(level, *of);
  }
  static void read(Level& level, const Expression& of) {
    if (of.kind == ExpressionKind::name) load(level, of.name);
    for_each_part(of, [&](const Expression& part) { read(level, part); });
  }

  template <typename Use>
  static void for_targets(const Expression& target, Use&& use) {
    if (target.kind != ExpressionKind::tuple) return use(target);
    for (const ExpressionPtr& part : target.operands) for_targets(*part, use);
  }
  static void write(Level& level, const Expression& target) {
    for_targets(target, [&](const Expression& to) {
      to.kind == ExpressionKind::member ? load(level, to.name) : store(level, to.name);
    });
  }
  static void take(Level& level, const Expression& target) {
    for_targets(target, [&](const Expression& to) { take(level, to.name); });
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
      case StatementKind::macro: return store(level, of.name);
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

  void enter(Level& level, const Body& body) {
    read(level, body);
    for (const auto& [name, start] : level.refs) {
      if (start == Start::unset)
        result_.unset_[&body].emplace_back(name, make_undefined(fmt::format("'{}' is undefined", name)));
    }
    enter_all(level, body);
  }

  void enter_all(const Level& level, const Body& body) {
    for (const auto& statement : body) enter_parts(level, *statement);
  }

  // Searches the scopes that a statement opens.
  void enter_parts(const Level& level, const Statement& of) {
    Level inner{&level};
    switch (of.kind) {
      case StatementKind::branches:
        for (const Branch& branch : of.branches) enter_all(level, branch.body);
        return;
      case StatementKind::loop: {
        take(inner, *of.target);
        take(inner, "loop");
        enter(inner, of.body);
        Level otherwise{&level};
        enter(otherwise, of.otherwise);
        return;
      }
      case StatementKind::with:
        for (const ExpressionPtr& target : of.targets) take(inner, *target);
        return enter(inner, of.body);
      case StatementKind::macro:
      case StatementKind::call_block:
        for (const Parameter& parameter : of.parameters) take(inner, parameter.name);
        for (const Parameter& parameter : of.parameters) read(inner, parameter.otherwise);
        return enter(inner, of.body);
      case StatementKind::scope: has_blocks_ |= !of.name.empty(); return enter(inner, of.body);
      case StatementKind::assign_block:
      case StatementKind::filter_block: return enter(inner, of.body);
      case StatementKind::output:
      case StatementKind::assign:
      case StatementKind::end_loop:
      case StatementKind::next_item: return;
    }
  }

  Scoping& result_;
  bool has_blocks_ = false;
};

Scoping::Scoping(const Body& whole) { ScopeSearch(*this).run(whole); }

namespace {

bool is_used_in(const Expression& of, std::string_view name) {
  bool is_used = of.kind == ExpressionKind::name && of.name == name;
  for_each_part(of, [&](const Expression& part) { is_used = is_used || is_used_in(part, name); });
  return is_used;
}

bool is_used_in(const Body& body, std::string_view name) {
  const auto in = [&](const ExpressionPtr& of) { return of && is_used_in(*of, name); };
  const auto in_parameter = [&](const Parameter& parameter) { return in(parameter.otherwise); };
  const auto in_branch = [&](const Branch& branch) { return in(branch.test) || is_used_in(branch.body, name); };
  return std::ranges::any_of(body, [&](const auto& of) {
    return in(of->target) || in(of->value) || in(of->test) || std::ranges::any_of(of->targets, in) ||
           std::ranges::any_of(of->values, in) || std::ranges::any_of(of->parameters, in_parameter) ||
           std::ranges::any_of(of->branches, in_branch) || is_used_in(of->body, name) ||
           is_used_in(of->otherwise, name);
  });
}

}  // namespace

bool uses(const Statement& macro, std::string_view name) { return is_used_in(macro.body, name); }

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
