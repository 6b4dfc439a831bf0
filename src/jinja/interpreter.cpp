// Defines Scope, Parameters, and the functions of Interpreter that run statements. evaluate.cpp evaluates expressions.
#include "jinja/interpreter.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "jinja/things.hpp"

namespace poise::jinja {

const Object* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    const auto found = std::ranges::find_if(scope->names, [&](const auto& entry) { return entry.first == name; });
    if (found != scope->names.end()) return &found->second;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Object value) {
  const auto found = std::ranges::find_if(names, [&](const auto& entry) { return entry.first == name; });
  if (found != names.end()) {
    found->second = std::move(value);
  } else {
    names.emplace_back(name, std::move(value));
  }
}

Interpreter::Nesting::Nesting(Interpreter& in) : depth(in.depth_) {
  in.budget_.step();
  if (depth >= in.budget_.limits().depth)
    throw Failure(FailureKind::limit, "the template's calls are nested too deeply");
  ++depth;
}

Interpreter::Interpreter(const Limits& limits, std::function<std::tm()> now, const Scoping& scoping)
    : budget_(limits), now_(std::move(now)), scoping_(scoping) {}

// Macros and scopes refer to each other, and namespaces to anything. The destructor clears scopes and namespaces while
// all of them exist, so that no memory leaks, and no long chain of objects is destroyed recursively.
Interpreter::~Interpreter() {
  for (const ScopePtr& scope : kept_) scope->names.clear();
  for (Namespace& space : namespaces_) space.entries.clear();
}

ScopePtr Interpreter::open_scope(const ScopePtr& scope) {
  constexpr std::size_t kMostScopes = 2000;
  if (scope->depth >= kMostScopes) throw Failure(FailureKind::limit, "the template's scopes are nested too deeply");
  budget_.charge(sizeof(Scope));
  return std::make_shared<Scope>(Scope{scope});
}

ScopePtr Interpreter::open_scope(const ScopePtr& scope, const Body& body) {
  ScopePtr inner = open_scope(scope);
  if (const auto* names = scoping_.find_unset_names(body)) {
    budget_.step(names->size());
    budget_.charge(names->size(), 64);
    inner->names = *names;
  }
  return inner;
}

Object Interpreter::make_namespace() {
  budget_.charge(256);
  return &namespaces_.emplace_back();
}

void Interpreter::keep_scope(const ScopePtr& scope) {
  if (!kept_.empty() && kept_.back() == scope) return;
  budget_.charge(64);
  kept_.push_back(scope);
}

void Interpreter::append_output(Text& out, const Object& value) {
  if (const Text* const text = value.text()) {
    budget_.charge(text->size());
    append(out, *text);
  } else {
    append(out, to_text(budget_, value));
  }
  if (out.size() > budget_.limits().output)
    throw Failure(FailureKind::limit, fmt::format("the template makes more than {} bytes", budget_.limits().output));
}

Text Interpreter::render(const Body& body, const ScopePtr& scope) {
  Text text;
  execute(body, scope, text);
  return text;
}

Flow Interpreter::execute(const Body& body, const ScopePtr& scope, Text& out) {
  for (const auto& statement : body) {
    const Flow flow = execute(*statement, scope, out);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Flow Interpreter::execute(const Statement& statement, const ScopePtr& scope, Text& out) {
  const Nesting nesting(*this);
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::output:
      for (const ExpressionPtr& value : statement.values) append_output(out, evaluate(*value, scope));
      return Flow::on;
    case StatementKind::loop: {
      const Object items = evaluate(*statement.value, scope);
      return run_loop(statement, read_items(budget_, items), scope, 0, out);
    }
    case StatementKind::branches: return run_branches(statement, scope, out);
    case StatementKind::assign: assign(*statement.target, evaluate(*statement.value, scope), scope); return Flow::on;
    case StatementKind::assign_block: {
      const Object made = render(statement.body, open_scope(scope, statement.body));
      assign(*statement.target, statement.value ? evaluate_filter(*statement.value, scope, &made) : made, scope);
      return Flow::on;
    }
    case StatementKind::with: run_with(statement, scope, out); return Flow::on;
    case StatementKind::macro:
      keep_scope(scope);
      scope->set(statement.name, ThingPtr(std::make_shared<Macro>(statement, scope)));
      return Flow::on;
    case StatementKind::call_block: run_call_block(statement, scope, out); return Flow::on;
    case StatementKind::filter_block: {
      const Object made = render(statement.body, open_scope(scope, statement.body));
      append_output(out, evaluate_filter(*statement.value, scope, &made));
      return Flow::on;
    }
    case StatementKind::scope: return execute(statement.body, open_scope(scope, statement.body), out);
    case StatementKind::end_loop: return Flow::end_loop;
    case StatementKind::next_item: return Flow::next_item;
  }
  return Flow::on;
}

Flow Interpreter::run_branches(const Statement& statement, const ScopePtr& scope, Text& out) {
  for (const Branch& branch : statement.branches) {
    if (!branch.test || is_true(evaluate(*branch.test, scope))) return execute(branch.body, scope, out);
  }
  return Flow::on;
}

void Interpreter::run_with(const Statement& statement, const ScopePtr& scope, Text& out) {
  const ScopePtr inner = open_scope(scope, statement.body);
  for (std::size_t i = 0; i < statement.targets.size(); ++i)
    assign(*statement.targets[i], evaluate(*statement.values[i], scope), inner);
  execute(statement.body, inner, out);
}

void Interpreter::run_call_block(const Statement& statement, const ScopePtr& scope, Text& out) {
  keep_scope(scope);
  const Expression& call_of = *statement.value;
  const Object callee = evaluate(*call_of.operands[0], scope);
  Parameters given = evaluate_arguments(call_of.arguments, scope);
  Keywords keywords = given.read_keywords();
  keywords.emplace_back(Text{"caller"}, ThingPtr(std::make_shared<Macro>(statement, scope)));
  Parameters with_caller(given.read_positional(), std::move(keywords));
  append_output(out, call(callee, with_caller));
}

Flow Interpreter::run_loop(const Statement& statement, std::vector<Object> items, const ScopePtr& scope,
                           std::size_t depth, Text& out) {
  const Nesting nesting(*this);
  if (statement.test) {
    std::vector<Object> chosen;
    for (Object& item : items) {
      const ScopePtr inner = open_scope(scope);
      assign(*statement.target, item, inner);
      if (is_true(evaluate(*statement.test, inner))) chosen.push_back(std::move(item));
    }
    items = std::move(chosen);
  }
  const auto state = std::make_shared<Loop>(statement, scope, std::move(items), depth);
  struct End {
    Loop& loop;
    ~End() { loop.end_loop(); }
  } const end{*state};
  bool is_done = false;  // some item reached the end of the body; Jinja runs `else` otherwise
  // The body may advance the loop (Loop::pop_items).
  for (std::size_t i = 0; i < state->items().size(); i = state->index() + 1) {
    budget_.step();
    state->set_index(i);
    const ScopePtr inner = open_scope(scope, statement.body);
    inner->set("loop", ThingPtr(state));
    assign(*statement.target, state->items()[i], inner);
    const Flow flow = execute(statement.body, inner, out);
    if (flow == Flow::end_loop) break;
    is_done |= flow == Flow::on;
  }
  if (!is_done && !statement.otherwise.empty())
    return execute(statement.otherwise, open_scope(scope, statement.otherwise), out);
  return Flow::on;
}

void Interpreter::assign(const Expression& target, const Object& value, const ScopePtr& scope) {
  if (target.kind == ExpressionKind::name) return scope->set(target.name, value);
  if (target.kind == ExpressionKind::tuple) return unpack(target.operands, value, scope);
  const Object* const object = scope->find(target.name);
  auto* const* const space = object == nullptr ? nullptr : object->get_if<Namespace*>();
  if (space == nullptr) fail("cannot assign attribute on non-namespace object");
  auto& entries = (*space)->entries;
  const auto found = std::ranges::find_if(entries, [&](const auto& entry) { return entry.first.bytes == target.text; });
  if (found != entries.end()) {
    found->second = value;
  } else {
    budget_.charge(64 + target.text.size());
    entries.emplace_back(Text{target.text}, value);
  }
}

void Interpreter::unpack(const std::vector<ExpressionPtr>& targets, const Object& value, const ScopePtr& scope) {
  if (!is_iterable(value)) fail(fmt::format("cannot unpack non-iterable {} object", get_type_name(value)));
  const std::vector<Object> items = read_items(budget_, value);
  if (items.size() > targets.size()) fail(fmt::format("too many values to unpack (expected {})", targets.size()));
  if (items.size() < targets.size())
    fail(fmt::format("not enough values to unpack (expected {}, got {})", targets.size(), items.size()));
  for (std::size_t i = 0; i < targets.size(); ++i) assign(*targets[i], items[i], scope);
}

Object Interpreter::call_macro(const Statement& macro, const ScopePtr& scope, Parameters& given) {
  const Nesting nesting(*this);
  const std::string name = macro.name.empty() ? "caller" : macro.name;
  const ScopePtr inner = open_scope(scope, macro.body);
  bool has_caller = false;
  for (const Parameter& parameter : macro.parameters) {
    has_caller |= parameter.name == "caller";
    auto value = given.read(parameter.name);
    if (!value) {
      value = parameter.otherwise ? evaluate(*parameter.otherwise, inner)
                                  : make_undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    }
    inner->set(parameter.name, *std::move(value));
  }
  if (macro.takes_caller && !has_caller) {
    const auto caller = given.read_keyword("caller");
    inner->set("caller", caller ? *caller : make_undefined("No caller defined"));
  }
  auto keywords = given.read_keywords();
  if (macro.takes_keywords) {
    Dict all;
    for (auto& [key, value] : keywords) all.set(budget_, std::move(key), std::move(value));
    inner->set("kwargs", make_dict(std::move(all)));
  } else if (!keywords.empty()) {
    fail(fmt::format("macro '{}' takes no keyword argument '{}'", name, keywords.front().first.bytes));
  }
  std::vector<Object> rest = given.read_positional();
  if (macro.takes_more) {
    inner->set("varargs", make_tuple(budget_, std::move(rest)));
  } else if (!rest.empty()) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", name, macro.parameters.size()));
  }
  return render(macro.body, inner);
}

std::optional<Object> Parameters::read(std::string_view name) {
  if (next_ < positional_.size()) return positional_[next_++];
  return read_keyword(name);
}

std::optional<Object> Parameters::read_keyword(std::string_view name) {
  const auto found = std::ranges::find_if(keywords_, [&](const auto& keyword) { return keyword.first.bytes == name; });
  if (found == keywords_.end()) return std::nullopt;
  Object value = std::move(found->second);
  keywords_.erase(found);
  return value;
}

Object Parameters::require(std::string_view name) {
  if (auto value = read(name)) return *std::move(value);
  fail(fmt::format("{} needs the argument '{}'", call_, name));
}

std::optional<std::int64_t> Parameters::read_optional_integer(std::string_view name) {
  const auto value = read(name);
  if (!value || value->is_none()) return std::nullopt;
  if (value->is_undefined()) fail_undefined(*value);
  const auto number = value->get_integer();
  if (!number) fail(fmt::format("'{}' of {} is a {}, expected an integer", name, call_, get_type_name(*value)));
  return number;
}

std::int64_t Parameters::read_integer(std::string_view name, std::int64_t otherwise) {
  return read_optional_integer(name).value_or(otherwise);
}

bool Parameters::read_truth(std::string_view name, bool otherwise) {
  const auto value = read(name);
  return value ? is_true(*value) : otherwise;
}

TextPtr Parameters::read_text(std::string_view name) {
  const Object value = require(name);
  if (value.is_undefined()) fail_undefined(value);
  const auto* const found = value.get_if<TextPtr>();
  if (found == nullptr) fail(fmt::format("'{}' of {} is a {}, expected a text", name, call_, get_type_name(value)));
  return *found;
}

std::vector<Object> Parameters::read_positional() {
  std::vector<Object> rest(std::make_move_iterator(positional_.begin() + static_cast<std::ptrdiff_t>(next_)),
                           std::make_move_iterator(positional_.end()));
  next_ = positional_.size();
  return rest;
}

Keywords Parameters::read_keywords() { return std::exchange(keywords_, {}); }

void Parameters::check_all_read() const {
  if (next_ < positional_.size()) fail(fmt::format("{} got {} arguments too many", call_, positional_.size() - next_));
  if (!keywords_.empty()) fail(fmt::format("{} has no argument '{}'", call_, keywords_.front().first.bytes));
}

}  // namespace poise::jinja
