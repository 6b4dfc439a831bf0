// The rules are those of jinja2/idtracking.py (jinja2 3.1.6; older ones differ where each branch sets a name).
#include "jinja/scoping.hpp"

#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

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

  // The names that a scope mentions itself.
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
  // What only a branch sets is not the scope's own from the beginning.
  static void store(Level& level, Name name) {
    if (level.refs.contains(name)) return;
    level.refs.emplace(name, level.branches > 0 || is_known(level.parent, name) ? Start::outer : Start::unset);
  }
  static void take(Level& level, Name parameter) { level.refs.emplace(parameter, Start::outer); }

  static void read(Level& level, const std::vector<ExpressionPtr>& all) {
    for (const ExpressionPtr& expression : all) read(level, expression);
  }
  static void read(Level& level, const ExpressionPtr& of) {
    if (!of) return;
    if (of->kind == ExpressionKind::name) load(level, of->name);
    read(level, of->operands);
    read(level, of->arguments.positional);
    for (const auto& [name, value] : of->arguments.keywords) read(level, value);
    read(level, of->arguments.rest);
    read(level, of->arguments.rest_keywords);
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
        result_.unset_[&body].emplace_back(name, undefined(fmt::format("'{}' is undefined", name)));
    }
    enter_all(level, body);
  }

  void enter_all(const Level& level, const Body& body) {
    for (const auto& statement : body) enter_parts(level, *statement);
  }

  // The scopes that a statement opens.
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

}  // namespace poise::jinja
