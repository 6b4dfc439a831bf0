// Tests are the operators after "is".

#include "jinja/filters.hpp"
#include "jinja/operators.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

// Returns the remainder of a division; 2 if it is neither an integer nor 0.0 nor 1.0.
std::int64_t compute_remainder(Interpreter& in, const Object& value, const Object& by) {
  const Object rest = compute(in, "%", value, by);
  if (const auto whole = rest.get_integer()) return *whole;
  const auto real = rest.get_number();
  return real && *real == 0 ? 0 : real && *real == 1 ? 1 : 2;
}

bool is_odd(Interpreter& in, const Object& value, Parameters&) { return compute_remainder(in, value, 2) == 1; }
bool is_even(Interpreter& in, const Object& value, Parameters&) { return compute_remainder(in, value, 2) == 0; }
bool is_divisible(Interpreter& in, const Object& value, Parameters& given) {
  return compute_remainder(in, value, given.require("num")) == 0;
}
bool is_defined(Interpreter&, const Object& value, Parameters&) { return !value.is_undefined(); }
bool is_not_defined(Interpreter&, const Object& value, Parameters&) { return value.is_undefined(); }
bool is_none_value(Interpreter&, const Object& value, Parameters&) { return value.is_none(); }
bool is_boolean(Interpreter&, const Object& value, Parameters&) { return value.is<bool>(); }
bool is_false_value(Interpreter&, const Object& value, Parameters&) {
  return value.is<bool>() && !*value.get_if<bool>();
}
bool is_true_value(Interpreter&, const Object& value, Parameters&) { return value.is<bool>() && *value.get_if<bool>(); }
bool is_integer_value(Interpreter&, const Object& value, Parameters&) { return value.is<std::int64_t>(); }
bool is_float_value(Interpreter&, const Object& value, Parameters&) { return value.is<double>(); }
bool is_number_value(Interpreter&, const Object& value, Parameters&) { return value.get_number().has_value(); }
bool is_string(Interpreter&, const Object& value, Parameters&) { return value.text() != nullptr; }
bool is_mapping(Interpreter&, const Object& value, Parameters&) { return value.is<DictPtr>(); }
bool is_sequence(Interpreter&, const Object& value, Parameters&) {
  return value.is_undefined() || value.text() != nullptr || value.sequence() != nullptr || value.is<DictPtr>() ||
         value.is<RangeObject>();
}
bool can_iterate(Interpreter&, const Object& value, Parameters&) { return is_iterable(value); }
bool can_call(Interpreter&, const Object& value, Parameters&) {
  const auto* const thing = value.get_if<ThingPtr>();
  return value.is_undefined() || (thing != nullptr && (*thing)->is_callable());
}
template <Case kCase>
bool is_in_case(Interpreter& in, const Object& value, Parameters&) {
  return has_case(to_text(in.budget(), value), kCase);
}
bool is_escaped(Interpreter&, const Object& value, Parameters&) {
  return value.text() != nullptr && value.text()->is_markup;
}
bool is_same_as(Interpreter&, const Object& value, Parameters& given) { return is_same(value, given.require("other")); }
bool is_in(Interpreter& in, const Object& value, Parameters& given) { return in.contains(given.require("seq"), value); }
bool is_filter_name(Interpreter& in, const Object& value, Parameters&) {
  check_hashable(in.budget(), value);
  return value.text() != nullptr && find_filter(value.text()->bytes) != nullptr;
}
bool is_test_name(Interpreter& in, const Object& value, Parameters&) {
  check_hashable(in.budget(), value);
  return value.text() != nullptr && find_test(value.text()->bytes) != nullptr;
}

constexpr char kEqual[] = "==";
constexpr char kUnequal[] = "!=";
constexpr char kLess[] = "<";
constexpr char kAtMost[] = "<=";
constexpr char kMore[] = ">";
constexpr char kAtLeast[] = ">=";
template <const char* kSign>
bool test_comparison(Interpreter& in, const Object& value, Parameters& given) {
  return compare(in.budget(), kSign, value, given.require("other"));
}

}  // namespace

Test find_test(std::string_view name) {
  static const std::map<std::string_view, Test> kTests = {
      {"odd", is_odd},
      {"even", is_even},
      {"divisibleby", is_divisible},
      {"defined", is_defined},
      {"undefined", is_not_defined},
      {"none", is_none_value},
      {"boolean", is_boolean},
      {"false", is_false_value},
      {"true", is_true_value},
      {"integer", is_integer_value},
      {"float", is_float_value},
      {"number", is_number_value},
      {"string", is_string},
      {"mapping", is_mapping},
      {"sequence", is_sequence},
      {"iterable", can_iterate},
      {"callable", can_call},
      {"lower", is_in_case<Case::lower>},
      {"upper", is_in_case<Case::upper>},
      {"escaped", is_escaped},
      {"sameas", is_same_as},
      {"in", is_in},
      {"filter", is_filter_name},
      {"test", is_test_name},
      {"==", test_comparison<kEqual>},
      {"eq", test_comparison<kEqual>},
      {"equalto", test_comparison<kEqual>},
      {"!=", test_comparison<kUnequal>},
      {"ne", test_comparison<kUnequal>},
      {"<", test_comparison<kLess>},
      {"lt", test_comparison<kLess>},
      {"lessthan", test_comparison<kLess>},
      {"<=", test_comparison<kAtMost>},
      {"le", test_comparison<kAtMost>},
      {">", test_comparison<kMore>},
      {"gt", test_comparison<kMore>},
      {"greaterthan", test_comparison<kMore>},
      {">=", test_comparison<kAtLeast>},
      {"ge", test_comparison<kAtLeast>},
  };
  const auto found = kTests.find(name);
  return found == kTests.end() ? nullptr : found->second;
}

}  // namespace poise::jinja
