// Methods of markup, as markupsafe 2.1.2 has them: arguments are escaped, and what they return is markup.
#include <algorithm>
#include <array>

#include "jinja/formatting.hpp"
#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

constexpr std::array<std::string_view, 16> kEscaping = {
    "capitalize", "center", "expandtabs", "ljust", "lower", "lstrip",   "partition", "replace",
    "rjust",      "rstrip", "rpartition", "strip", "title", "swapcase", "upper",     "zfill"};
// Methods that need more than escaped arguments: they escape some arguments, or return several texts.
constexpr std::array<std::string_view, 6> kOthers = {"format", "format_map", "join", "rsplit", "split", "splitlines"};

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Object as_markup(const Object& object) {
  if (object.text() == nullptr || object.text()->is_markup) return object;
  Text text = *object.text();
  text.is_markup = true;
  return text;
}

// A text, or the texts of a list or tuple.
Object all_as_markup(Budget& budget, const Object& result) {
  if (result.sequence() == nullptr) return as_markup(result);
  std::vector<Object> items = *result.sequence();
  for (Object& item : items) {
    if (item.text() != nullptr) budget.charge(2 * item.text()->size());
    item = as_markup(item);
  }
  return result.is<List>() ? make_list(budget, std::move(items)) : make_tuple(budget, std::move(items));
}

Parameters with_escaped(Budget& budget, Parameters& given) {
  const auto escape = [&](Object& value) {
    if (value.text() != nullptr) value = escaped(budget, *value.text());
  };
  std::vector<Object> positional = given.positional();
  Keywords keywords = given.keywords();
  std::ranges::for_each(positional, escape);
  for (auto& [name, value] : keywords) escape(value);
  Parameters made(std::move(positional), std::move(keywords));
  made.name_call(given.call_name());
  return made;
}

}  // namespace

Object markup_method(const Object& markup, std::string_view name, Method of_text) {
  const bool escapes = is_one_of(kEscaping, name);
  const bool makes_markup = escapes || is_one_of(kOthers, name);
  const auto body = [=](Interpreter& in, Parameters& given) {
    if (!escapes) {
      const Object result = of_text(in, markup, given);
      return makes_markup ? all_as_markup(in.budget(), result) : result;
    }
    Parameters arguments = with_escaped(in.budget(), given);
    return all_as_markup(in.budget(), of_text(in, markup, arguments));
  };
  return ThingPtr(std::make_shared<Function>(std::string(name), body, depth_of(markup)));
}

}  // namespace poise::jinja
