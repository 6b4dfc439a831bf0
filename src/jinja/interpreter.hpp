// An Interpreter renders one template once.
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

// Names keep their marks (text.hpp): a name in a dictionary after ** may be input.
using Keywords = std::vector<std::pair<Text, Object>>;

// Holds the arguments of one call, which the callee reads one by one.
class Parameters {
 public:
  Parameters() = default;
  Parameters(std::vector<Object> positional, Keywords keywords)
      : positional_(std::move(positional)), keywords_(std::move(keywords)) {}

  // Sets the name of the callee in messages, such as "replace()".
  void set_call_name(std::string name) { call_ = std::move(name); }
  const std::string& call_name() const { return call_; }

  // Returns the next positional argument. If there is none, returns the argument with this name, or else std::nullopt.
  std::optional<Object> read(std::string_view name);
  // Does the same, but throws if there is no argument.
  Object require(std::string_view name);
  std::int64_t read_integer(std::string_view name, std::int64_t otherwise);
  // Reads an integer argument. The value None counts as left out.
  std::optional<std::int64_t> read_optional_integer(std::string_view name);
  bool read_truth(std::string_view name, bool otherwise);
  // Reads a text argument. Throws if it is not a text.
  TextPtr read_text(std::string_view name);
  // Returns the argument that the call gives by this name; std::nullopt if there is none.
  std::optional<Object> read_keyword(std::string_view name);

  // Each function returns the remaining arguments.
  std::vector<Object> read_positional();
  Keywords read_keywords();
  bool has_positional() const { return next_ < positional_.size(); }
  // Throws if arguments remain. Call it after the callee has read its arguments.
  void check_all_read() const;

 private:
  std::string call_ = "the function";
  std::vector<Object> positional_;
  std::size_t next_ = 0;
  Keywords keywords_;
};

// Holds the variables of one scope by name. `parent` is the enclosing scope; null for the global one.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Object>> names = {};
  std::size_t depth = parent ? parent->depth + 1 : 0;

  const Object* find(std::string_view name) const;
  void set(std::string_view name, Object value);
};
using ScopePtr = std::shared_ptr<Scope>;

// States how to continue after a body: with the next statement (`on`), after the loop, or with the loop's next item.
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
  // Returns the template's line of the expression or statement that ran last, for messages.
  std::size_t line() const { return line_; }

  // Returns a scope with the functions that every template has.
  ScopePtr make_globals();
  // Returns a new scope inside another. Throws where scopes nest too deeply.
  ScopePtr open_scope(const ScopePtr& scope);
  // Returns a new scope for a body, with the names that are undefined at its beginning (scoping.hpp).
  ScopePtr open_scope(const ScopePtr& scope, const Body& body);

  Object evaluate(const Expression& expression, const ScopePtr& scope);
  Flow execute(const Body& body, const ScopePtr& scope, Text& out);
  // Returns the output of a body.
  Text render(const Body& body, const ScopePtr& scope);
  // Runs a loop over items. In a recursive loop, loop(items) calls it, too.
  Flow run_loop(const Statement& loop, std::vector<Object> items, const ScopePtr& scope, std::size_t depth, Text& out);
  Object call_macro(const Statement& macro, const ScopePtr& scope, Parameters& parameters);

  // Each function returns object.name or object[key], or undefined. As in Jinja, find_attribute() looks for attributes
  // and methods first, and find_item() for items.
  Object find_attribute(const Object& object, std::string_view name);
  Object find_item(const Object& object, const Object& key);
  Object call(const Object& callee, Parameters& parameters);
  Object apply_filter(std::string_view name, const Object& value, Parameters& parameters);
  bool apply_test(std::string_view name, const Object& value, Parameters& parameters);
  bool contains(const Object& container, const Object& value);

  Object make_namespace();
  // Keeps a scope for the whole rendering, because macros in it refer to it.
  void keep_scope(const ScopePtr& scope);
  void append_output(Text& out, const Object& value);

 private:
  // Counts one level of nested expressions and statements while it exists. Throws if they nest too deeply.
  struct Nesting {
    explicit Nesting(Interpreter& in);
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    std::size_t& depth;
  };

  Flow execute(const Statement& statement, const ScopePtr& scope, Text& out);
  Flow run_branches(const Statement& statement, const ScopePtr& scope, Text& out);
  void run_with(const Statement& statement, const ScopePtr& scope, Text& out);
  void run_call_block(const Statement& statement, const ScopePtr& scope, Text& out);
  void assign(const Expression& target, const Object& value, const ScopePtr& scope);
  void unpack(const std::vector<ExpressionPtr>& targets, const Object& value, const ScopePtr& scope);

  Object evaluate_name(const Expression& expression, const ScopePtr& scope);
  Object evaluate_container(const Expression& expression, const ScopePtr& scope);
  Object evaluate_access(const Expression& expression, const ScopePtr& scope);
  Object evaluate_slice(const Object& object, const Expression& expression, const ScopePtr& scope);
  Object call(const Expression& expression, const ScopePtr& scope);
  Object evaluate_filter(const Expression& expression, const ScopePtr& scope, const Object* block);
  bool evaluate_test(const Expression& expression, const ScopePtr& scope);
  Object evaluate_condition(const Expression& expression, const ScopePtr& scope);
  Object evaluate_logical(const Expression& expression, const ScopePtr& scope);
  Object evaluate_arithmetic(const Expression& expression, const ScopePtr& scope);
  Object evaluate_concat(const Expression& expression, const ScopePtr& scope);
  bool evaluate_comparison(const Expression& expression, const ScopePtr& scope);
  Parameters evaluate_arguments(const Arguments& arguments, const ScopePtr& scope);

  Budget budget_;
  std::function<std::tm()> now_;
  const Scoping& scoping_;
  std::size_t line_ = 1;
  std::size_t depth_ = 0;
  std::deque<Namespace> namespaces_;
  std::vector<ScopePtr> kept_;
};

}  // namespace poise::jinja
