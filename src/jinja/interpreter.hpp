// Interpreter: renders one template once.
#pragma once

#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/budget.hpp"
#include "jinja/object.hpp"
#include "jinja/scoping.hpp"
#include "jinja/syntax_tree.hpp"

namespace poise::jinja {

// Parameters: the arguments of one call; the callee takes them one by one.

// Names keep their marks: those after ** may be input.
using Keywords = std::vector<std::pair<Text, Object>>;

class Parameters {
 public:
  Parameters() = default;
  Parameters(std::vector<Object> positional, Keywords keywords)
      : positional_(std::move(positional)), keywords_(std::move(keywords)) {}

  // For messages: "replace()".
  void name_call(std::string name) { call_ = std::move(name); }
  const std::string& call_name() const { return call_; }

  // The next positional argument, else the one with that name.
  std::optional<Object> take(std::string_view name);
  Object required(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  std::optional<std::int64_t> optional_integer(std::string_view name);  // none counts as left out
  bool truth(std::string_view name, bool otherwise);
  // Throws if it is not a text.
  TextPtr text(std::string_view name);
  // Only by name.
  std::optional<Object> keyword(std::string_view name);

  // Returns the remaining arguments.
  std::vector<Object> positional();
  Keywords keywords();
  bool has_positional() const { return next_ < positional_.size(); }
  // Throws if arguments remain.
  void finish() const;

 private:
  std::string call_ = "the function";
  std::vector<Object> positional_;
  std::size_t next_ = 0;
  Keywords keywords_;
};

// The names of a block, and the enclosing scope.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Object>> names = {};
  std::size_t depth = parent ? parent->depth + 1 : 0;

  const Object* find(std::string_view name) const;
  void set(std::string_view name, Object value);
};
using ScopePtr = std::shared_ptr<Scope>;

// The way in which a body ended.
enum class Flow : unsigned char { on, end_loop, next_item };

class Interpreter {
 public:
  // Requires: `scoping` outlives this.
  Interpreter(const Limits& limits, std::function<std::tm()> now, const Scoping& scoping);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Budget& budget() { return budget_; }
  std::tm now() const { return now_(); }
  // Returns the line of the last computation.
  std::size_t line() const { return line_; }

  // Returns a scope with the functions of every template.
  ScopePtr globals();
  // Throws where scopes nest too deeply.
  ScopePtr inside(const ScopePtr& scope);
  // Returns the scope in which a body runs.
  ScopePtr inside(const ScopePtr& scope, const Body& body);

  Object evaluate(const Expression& expression, const ScopePtr& scope);
  Flow execute(const Body& body, const ScopePtr& scope, Text& out);
  // Returns the output of a body.
  Text text_of(const Body& body, const ScopePtr& scope);
  // Runs a loop over items; a recursive loop calls it with others.
  Flow loop(const Statement& loop, std::vector<Object> items, const ScopePtr& scope, std::size_t depth, Text& out);
  Object call_macro(const Statement& macro, const ScopePtr& scope, Parameters& parameters);

  // value.name and value[key], with Jinja's precedence: methods first, or items.
  Object attribute(const Object& of, std::string_view name);
  Object item(const Object& of, const Object& key);
  Object call(const Object& callee, Parameters& parameters);
  Object filter(std::string_view name, const Object& value, Parameters& parameters);
  bool test(std::string_view name, const Object& value, Parameters& parameters);
  bool contains(const Object& container, const Object& value);

  Object make_namespace();
  // Keeps a scope for the whole rendering, because macros in it refer to it.
  void keep(const ScopePtr& scope);
  void print(Text& out, const Object& value);

 private:
  struct Deeper;

  Flow execute(const Statement& statement, const ScopePtr& scope, Text& out);
  Flow branches(const Statement& statement, const ScopePtr& scope, Text& out);
  void with(const Statement& statement, const ScopePtr& scope, Text& out);
  void call_block(const Statement& statement, const ScopePtr& scope, Text& out);
  void assign(const Expression& target, const Object& value, const ScopePtr& scope);
  void unpack(const std::vector<ExpressionPtr>& targets, const Object& value, const ScopePtr& scope);

  Object name(const Expression& expression, const ScopePtr& scope);
  Object container(const Expression& expression, const ScopePtr& scope);
  Object access(const Expression& expression, const ScopePtr& scope);
  Object slice(const Object& of, const Expression& expression, const ScopePtr& scope);
  Object call(const Expression& expression, const ScopePtr& scope);
  Object filtered(const Expression& expression, const ScopePtr& scope, const Object* block);
  bool tested(const Expression& expression, const ScopePtr& scope);
  Object condition(const Expression& expression, const ScopePtr& scope);
  Object logical(const Expression& expression, const ScopePtr& scope);
  Object arithmetic(const Expression& expression, const ScopePtr& scope);
  Object concat(const Expression& expression, const ScopePtr& scope);
  bool compare(const Expression& expression, const ScopePtr& scope);
  Parameters parameters(const Arguments& arguments, const ScopePtr& scope);

  Budget budget_;
  std::function<std::tm()> now_;
  const Scoping& scoping_;
  std::size_t line_ = 1;
  std::size_t depth_ = 0;
  std::deque<Namespace> namespaces_;
  std::vector<ScopePtr> kept_;
};

}  // namespace poise::jinja
