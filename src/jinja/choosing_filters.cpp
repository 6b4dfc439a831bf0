// Filters that apply another filter or a test to each item.
#include <fmt/format.h>

#include "jinja/filters.hpp"

namespace poise::jinja {
namespace {

Object filter_map(Interpreter& in, const Object& value, Parameters& given) {
  if (!is_true(value)) return make_iterator(in.budget(), {});
  std::vector<Object> result;
  if (!given.has_positional()) {
    if (const auto attribute = given.keyword("attribute")) {
      Key key(in, *attribute, true);
      if (const auto otherwise = given.keyword("default"); otherwise && !otherwise->is_none())
        key.default_to(*otherwise);
      given.finish();
      for (const Object& item : items_of(in.budget(), value)) result.push_back(key(item));
      return make_iterator(in.budget(), std::move(result));
    }
    fail("map requires a filter argument");
  }
  const TextPtr name = given.text("name");
  const std::vector<Object> positional = given.positional();
  const auto keywords = given.keywords();
  for (const Object& item : items_of(in.budget(), value)) {
    Parameters each(positional, keywords);
    result.push_back(in.filter(name->bytes, item, each));
  }
  return make_iterator(in.budget(), std::move(result));
}

template <bool kKeeps, bool kByAttribute>
Object filter_select(Interpreter& in, const Object& value, Parameters& given) {
  if (!is_true(value)) return make_iterator(in.budget(), {});
  Object attribute = nullptr;
  if (kByAttribute) {
    const auto name = given.take("attribute");
    if (!name) fail("Missing parameter for attribute name");
    attribute = *name;
  }
  const Key key(in, attribute, true);
  const TextPtr test = given.has_positional() ? given.text("test") : nullptr;
  const std::vector<Object> positional = given.positional();
  const auto keywords = given.keywords();
  std::vector<Object> result;
  for (Object& item : items_of(in.budget(), value)) {
    const Object looked_at = key(item);
    Parameters each(positional, keywords);
    const bool holds = test ? in.test(test->bytes, looked_at, each) : is_true(looked_at);
    if (holds == kKeeps) result.push_back(std::move(item));
  }
  return make_iterator(in.budget(), std::move(result));
}

}  // namespace

const Filters& choosing_filters() {
  static const Filters kFilters = {
      {"map", filter_map},
      {"select", filter_select<true, false>},
      {"reject", filter_select<false, false>},
      {"selectattr", filter_select<true, true>},
      {"rejectattr", filter_select<false, true>},
  };
  return kFilters;
}

}  // namespace poise::jinja
