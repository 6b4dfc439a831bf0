// Finds filters and tests by name, and declares what several filters use.
#pragma once

#include <map>
#include <string_view>

#include "jinja/things.hpp"

namespace poise::jinja {

using Filters = std::map<std::string_view, Method>;
const Filters& get_text_filters();
const Filters& get_sequence_filters();
const Filters& get_number_filters();

// Returns null for an unknown name.
Method find_filter(std::string_view name);

using Test = bool (*)(Interpreter& in, const Object& value, Parameters& parameters);
// Returns null for an unknown name.
Test find_test(std::string_view name);

// Returns the attribute or item of an object that a filter's argument names, such as "a.b.0" or 2. Without a name
// (None), returns the object. If `with_case` is false, a text is returned in lower case.
class Key {
 public:
  Key(Interpreter& in, const Object& attribute, bool with_case);
  void set_default(Object value) { otherwise_ = std::move(value); }
  Object operator()(const Object& item) const;

 private:
  Interpreter& in_;
  std::vector<Object> path_;
  bool with_case_;
  std::optional<Object> otherwise_;
};

// Holds options of Python's json.dumps().
struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  std::optional<Text> indent = {};
  std::optional<std::pair<Text, Text>> separators = {};  // the separator between items, and that after a key
};
Text format_json(Budget& budget, const Object& value, const JsonStyle& style);

}  // namespace poise::jinja
