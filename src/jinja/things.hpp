// Declares objects that templates call or whose attributes they use: macros, loops, functions, methods.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// Represents a macro, or the body of a call block as the function caller().
class Macro final : public Thing {
 public:
  // Requires: the template outlives this, and Interpreter::keep_scope() was called for the scope.
  Macro(const Statement& macro, ScopePtr scope) : macro_(macro), scope_(std::move(scope)) {}

  std::string type() const override { return "Macro"; }
  std::string describe() const override;
  Object call(Interpreter& in, Parameters& parameters) override { return in.call_macro(macro_, scope_, parameters); }
  std::optional<Object> find_attribute(Interpreter& in, std::string_view name) override;

 private:
  const Statement& macro_;
  ScopePtr scope_;
};

// Represents the variable `loop`, which templates use inside a loop.
class Loop final : public Thing, public std::enable_shared_from_this<Loop> {
 public:
  Loop(const Statement& loop, ScopePtr scope, std::vector<Object> items, std::size_t depth);

  const std::vector<Object>& items() const { return items_; }
  std::size_t index() const { return index_; }
  void set_index(std::size_t index) { index_ = index; }
  // Ends the loop. Releases values that may refer to the loop itself.
  void end_loop() {
    has_ended_ = true;
    last_.reset();
  }

  std::string type() const override { return "LoopContext"; }
  std::string describe() const override;
  unsigned depth() const override { return object_depth_; }
  std::optional<std::size_t> length() const override { return items_.size(); }
  bool is_iterable() const override { return true; }
  // Advances the loop. An item is a pair of the loop's item and the loop, as in Jinja.
  std::vector<Object> pop_items(Budget& budget, std::size_t most) override;
  Object call(Interpreter& in, Parameters& parameters) override;
  std::optional<Object> find_attribute(Interpreter& in, std::string_view name) override;

  // These implement loop.cycle() and loop.changed().
  Object cycle(Parameters& parameters) const;
  bool changed(Interpreter& in, Parameters& parameters);

 private:
  const Statement& loop_;
  std::weak_ptr<Scope> scope_;
  std::vector<Object> items_;
  std::size_t depth_;
  std::size_t index_ = 0;
  bool has_ended_ = false;
  unsigned object_depth_;
  std::optional<std::vector<Object>> last_;  // the arguments of the last changed()
};

// Represents a built-in function, or a method with its object.
class Function final : public Thing {
 public:
  using Body = std::function<Object(Interpreter& in, Parameters& parameters)>;
  Function(std::string name, Body body, unsigned depth = 0)
      : name_(std::move(name)), body_(std::move(body)), depth_(depth) {}

  std::string type() const override { return "function"; }
  std::string describe() const override { return "<function " + name_ + ">"; }
  unsigned depth() const override { return depth_; }
  Object call(Interpreter& in, Parameters& parameters) override {
    parameters.set_call_name(name_ + "()");
    return body_(in, parameters);
  }

 private:
  std::string name_;
  Body body_;
  unsigned depth_;
};

using Method = Object (*)(Interpreter& in, const Object& self, Parameters& parameters);

// Returns the function for the method `name` of texts; null if texts have no such method.
Method find_text_method(std::string_view name);
// Returns the method `name` of markup. It calls `of_text`, the method of other texts, but escapes arguments and returns
// markup where markupsafe does.
Object make_markup_method(const Object& markup, std::string_view name, Method of_text);
Method find_dict_method(std::string_view name);
Method find_sequence_method(std::string_view name);

// Returns dict.fromkeys(keys, value=None).
Object make_dict_from_keys(Interpreter& in, const Object& self, Parameters& given);

// Adds the functions that every template has: namespace(), dict(), range(), ...
void add_functions(Interpreter& in, Scope& globals);

// Filters and methods of texts use the following functions.

enum class Sides { left, right, both };
// Removes the characters of a set at the left, the right or both ends of a text. A null set stands for white space.
Text strip_text(const Text& text, const Text* set, Sides sides);
// Splits a text at a separator, or at white space if `separator` is null. `most` limits the number of cuts,
// to the last ones if `from_right`.
std::vector<Object> split(const Text& text, const Text* separator, std::optional<std::int64_t> most, bool from_right);
std::vector<Text> split_lines(const Text& text, bool with_ends);
Text replace_text(Budget& budget, const Text& text, const Text& from, const Text& to, std::int64_t most);
Text join_texts(Budget& budget, const Text& separator, const std::vector<Object>& items);
// Pads a text to a width in characters.
Text pad_text(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Sides fill_sides);
Text capitalize_text(const Text& text);
// Returns what Python's str.islower() returns, or for Case::upper what str.isupper() returns.
bool has_case(const Text& text, Case which);

}  // namespace poise::jinja
