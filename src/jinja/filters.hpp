// Filters and tests by name, a row for each.
#pragma once

#include <map>
#include <string_view>

#include "jinja/things.hpp"

namespace poise::jinja {

using Filters = std::map<std::string_view, Method>;
const Filters& text_filters();
const Filters& sequence_filters();
const Filters& number_filters();
const Filters& choosing_filters();  // map, select and their like

// Returns null if unknown.
Method filter_of(std::string_view name);

using Test = bool (*)(Interpreter& in, const Object& value, Parameters& parameters);
// Returns null if unknown.
Test test_of(std::string_view name);

// An attribute argument of a filter: "a.b.0", 2. In lower case where case does not count.
class Key {
 public:
  Key(Interpreter& in, const Object& attribute, bool with_case);
  void default_to(Object value) { otherwise_ = std::move(value); }
  Object operator()(const Object& item) const;

 private:
  Interpreter& in_;
  std::vector<Object> path_;
  bool with_case_;
  std::optional<Object> otherwise_;
};

// The style of Python's json.dumps().
struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<Text> indent = {};
  std::optional<std::pair<Text, Text>> separators = {};  // of items, of keys
};
Text json_text(Budget& budget, const Object& value, const JsonStyle& style);

}  // namespace poise::jinja
