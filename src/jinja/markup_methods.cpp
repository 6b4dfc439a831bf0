// Makes the methods of markup as in markupsafe 2.1.2. Many of them escape their arguments and return markup.
#include <algorithm>
#include <array>

#include "jinja/formatting.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

constexpr std::array<std::string_view, 16> kEscaping = {
    "capitalize", "center", "expandtabs", "ljust", "lower", "lstrip",   "partition", "replace",
    "rjust",      "rstrip", "rpartition", "strip", "title", "swapcase", "upper",     "zfill"};
// These methods return markup, too. Those that insert values into it escape the values themselves.
constexpr std::array<std::string_view, 6> kOthers = {"format", "format_map", "join", "rsplit", "split", "splitlines"};

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Object mark_as_markup(const Object& object) {
  if (object.text() == nullptr || object.text()->is_markup) return object;
  Text text = *object.text();
  text.is_markup = true;
  return text;
}

// Marks a text, or the texts of a list or tuple.
Object mark_all_as_markup(Budget& budget, const Object& result) {
  if (result.sequence() == nullptr) return mark_as_markup(result);
  std::vector<Object> items = *result.sequence();
  for (Object& item : items) {
    if (item.text() != nullptr) budget.charge(2 * item.text()->size());
    item = mark_as_markup(item);
  }
  return result.is<List>() ? make_list(budget, std::move(items)) : make_tuple(budget, std::move(items));
}

Parameters escape_arguments(Budget& budget, Parameters& given) {
  const auto escape = [&](Object& value) {
    if (value.text() != nullptr) value = escape_markup(budget, *value.text());
  };
  std::vector<Object> positional = given.read_positional();
  Keywords keywords = given.read_keywords();
  std::ranges::for_each(positional, escape);
  for (auto& [name, value] : keywords) escape(value);
  Parameters made(std::move(positional), std::move(keywords));
  made.set_call_name(given.call_name());
  return made;
}

}  // namespace

Object make_markup_method(const Object& markup, std::string_view name, Method of_text) {
  const bool escapes = is_one_of(kEscaping, name);
  const bool makes_markup = escapes || is_one_of(kOthers, name);
  const auto body = [=](Interpreter& in, Parameters& given) {
    if (!escapes) {
      const Object result = of_text(in, markup, given);
      return makes_markup ? mark_all_as_markup(in.budget(), result) : result;
    }
    Parameters arguments = escape_arguments(in.budget(), given);
    const Object result = of_text(in, markup, arguments);
    arguments.check_all_read();
    return mark_all_as_markup(in.budget(), result);
  };
  return ThingPtr(std::make_shared<Function>(std::string(name), body, measure_depth(markup)));
}

}  // namespace poise::jinja
