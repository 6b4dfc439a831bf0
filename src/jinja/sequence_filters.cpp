// These filters order sequences, and choose, change or add up their items.
#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "jinja/filters.hpp"
#include "jinja/operators.hpp"

namespace poise::jinja {
namespace {

Object filter_length(Interpreter&, const Object& value, Parameters&) {
  const auto length = find_length(value);
  if (!length) fail(fmt::format("object of type '{}' has no len()", get_type_name(value)));
  return static_cast<std::int64_t>(*length);
}

Object filter_first(Interpreter& in, const Object& value, Parameters&) {
  const Object none = make_undefined("No first item, sequence was empty.");
  if (is_iterator(value)) return pop_item(in.budget(), value).value_or(none);
  const std::vector<Object> items = read_items(in.budget(), value);
  return items.empty() ? none : items.front();
}

void check_reversible(const Object& value) {
  if (is_iterator(value) || !is_iterable(value))
    fail(fmt::format("'{}' object is not reversible", get_type_name(value)));
}

Object filter_last(Interpreter& in, const Object& value, Parameters&) {
  check_reversible(value);
  const std::vector<Object> items = read_items(in.budget(), value);
  return items.empty() ? make_undefined("No last item, sequence was empty.") : items.back();
}

Object filter_random(Interpreter& in, const Object& value, Parameters&) {
  const std::vector<Object> items = read_items(in.budget(), value);
  if (items.empty()) return make_undefined("No random item, sequence was empty.");
  std::random_device device;
  return items[std::uniform_int_distribution<std::size_t>(0, items.size() - 1)(device)];
}

Object filter_list(Interpreter& in, const Object& value, Parameters&) {
  return make_list(in.budget(), read_items(in.budget(), value));
}

Object filter_reverse(Interpreter& in, const Object& value, Parameters&) {
  if (value.text() == nullptr) {
    if (!is_iterable(value)) fail("argument must be iterable");
    std::vector<Object> items = read_items(in.budget(), value);
    std::ranges::reverse(items);
    const bool has_iterator =
        value.sequence() != nullptr || value.is<RangeObject>() || value.is<DictPtr>() || value.is<DictView>();
    return has_iterator ? make_iterator(in.budget(), std::move(items), "list_reverseiterator")
                        : make_list(in.budget(), std::move(items));
  }
  const std::vector<std::size_t> begins = find_characters(value.text()->bytes);
  in.budget().charge(2 * value.text()->size());
  Text out;
  for (std::size_t i = begins.size() - 1; i > 0; --i) append(out, *value.text(), begins[i - 1], begins[i]);
  return out;
}

// Sorts items by their keys. Items with equal keys stay in order.
std::vector<Object> sort_by_keys(Interpreter& in, std::vector<Object> items, const std::vector<Object>& keys,
                                 bool reverse) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return reverse ? is_less(in.budget(), keys[b], keys[a]) : is_less(in.budget(), keys[a], keys[b]);
  });
  std::vector<Object> result;
  for (const std::size_t i : order) result.push_back(std::move(items[i]));
  return result;
}

Object filter_sort(Interpreter& in, const Object& value, Parameters& given) {
  const bool reverse = given.read_truth("reverse", false);
  const bool with_case = given.read_truth("case_sensitive", false);
  const Object attribute = given.read("attribute").value_or(nullptr);
  std::vector<Key> all;
  if (attribute.text() != nullptr) {
    const std::string& names = attribute.text()->bytes;
    for (std::size_t begin = 0; begin <= names.size();) {
      const std::size_t end = std::min(names.find(',', begin), names.size());
      in.budget().charge(2 * (end - begin) + 128);
      all.emplace_back(in, Text{names.substr(begin, end - begin)}, with_case);
      begin = end + 1;
    }
  } else {
    all.emplace_back(in, attribute, with_case);
  }
  std::vector<Object> items = read_items(in.budget(), value);
  std::vector<Object> keys;
  for (const Object& item : items) {
    std::vector<Object> of_item;
    for (const Key& key : all) of_item.push_back(key(item));
    keys.push_back(make_list(in.budget(), std::move(of_item)));
  }
  return make_list(in.budget(), sort_by_keys(in, std::move(items), keys, reverse));
}

Object filter_dictsort(Interpreter& in, const Object& value, Parameters& given) {
  const bool with_case = given.read_truth("case_sensitive", false);
  const Object by = given.read("by").value_or("key");
  const bool reverse = given.read_truth("reverse", false);
  const bool by_key = by.text() != nullptr && by.text()->bytes == "key";
  if (!by_key && (by.text() == nullptr || by.text()->bytes != "value"))
    fail("You can only sort by either \"key\" or \"value\"");
  if (value.is_undefined()) fail_undefined(value);
  const auto* const dict = value.get_if<DictPtr>();
  if (dict == nullptr) fail(fmt::format("'{}' object has no attribute 'items'", get_type_name(value)));
  const Key key(in, by_key ? 0 : 1, with_case);
  std::vector<Object> items = read_items(in.budget(), DictView{DictView::Of::items, *dict});
  std::vector<Object> keys;
  for (const Object& item : items) keys.push_back(key(item));
  return make_list(in.budget(), sort_by_keys(in, std::move(items), keys, reverse));
}

Object filter_items(Interpreter& in, const Object& value, Parameters&) {
  if (value.is_undefined()) return make_iterator(in.budget(), {});
  const auto* const dict = value.get_if<DictPtr>();
  if (dict == nullptr) fail("Can only get item pairs from a mapping.");
  return make_iterator(in.budget(), read_items(in.budget(), DictView{DictView::Of::items, *dict}));
}

Object filter_unique(Interpreter& in, const Object& value, Parameters& given) {
  const bool with_case = given.read_truth("case_sensitive", false);
  const Key key(in, given.read("attribute").value_or(nullptr), with_case);
  Dict seen;
  std::vector<Object> result;
  for (Object& item : read_items(in.budget(), value)) {
    const Object of_item = key(item);
    check_hashable(in.budget(), of_item);
    if (seen.find(in.budget(), of_item) != nullptr) continue;
    seen.set(in.budget(), of_item, nullptr);
    result.push_back(std::move(item));
  }
  return make_iterator(in.budget(), std::move(result));
}

template <bool kMost>
Object filter_extreme(Interpreter& in, const Object& value, Parameters& given) {
  const bool with_case = given.read_truth("case_sensitive", false);
  const Key key(in, given.read("attribute").value_or(nullptr), with_case);
  const std::vector<Object> items = read_items(in.budget(), value);
  if (items.empty()) return make_undefined("No aggregated item, sequence was empty.");
  std::size_t best = 0;
  Object best_key = key(items[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Object of_item = key(items[i]);
    const bool is_better =
        kMost ? is_less(in.budget(), best_key, of_item, ">") : is_less(in.budget(), of_item, best_key);
    if (!is_better) continue;
    best = i;
    best_key = std::move(of_item);
  }
  return items[best];
}

Object filter_sum(Interpreter& in, const Object& value, Parameters& given) {
  const Object attribute = given.read("attribute").value_or(nullptr);
  Object total = given.read("start").value_or(0);
  if (total.text() != nullptr) fail("sum() can't sum strings [use ''.join(seq) instead]");
  const Key key(in, attribute, true);
  for (const Object& item : read_items(in.budget(), value)) total = compute(in, "+", total, key(item));
  return total;
}

std::int64_t read_required_integer(Parameters& given, std::string_view name) {
  const auto number = given.require(name).get_integer();
  if (!number) fail(fmt::format("'{}' has to be an integer", name));
  return *number;
}

Object filter_batch(Interpreter& in, const Object& value, Parameters& given) {
  const std::int64_t count = read_required_integer(given, "linecount");
  const Object fill = given.read("fill_with").value_or(nullptr);
  std::vector<Object> batches;
  std::vector<Object> batch;
  for (Object& item : read_items(in.budget(), value)) {
    if (static_cast<std::int64_t>(batch.size()) == count)
      batches.push_back(make_list(in.budget(), std::exchange(batch, {})));
    batch.push_back(std::move(item));
  }
  if (!batch.empty()) {
    if (!fill.is_none() && static_cast<std::int64_t>(batch.size()) < count) {
      in.budget().charge(static_cast<std::uint64_t>(count), 64);
      batch.resize(static_cast<std::size_t>(count), fill);
    }
    batches.push_back(make_list(in.budget(), std::move(batch)));
  }
  return make_iterator(in.budget(), std::move(batches));
}

Object filter_slice(Interpreter& in, const Object& value, Parameters& given) {
  const std::int64_t count = read_required_integer(given, "slices");
  const Object fill = given.read("fill_with").value_or(nullptr);
  const std::vector<Object> items = read_items(in.budget(), value);
  if (count == 0) fail("integer division or modulo by zero");
  std::vector<Object> slices;
  const std::size_t size = items.size();
  const std::size_t parts = count < 0 ? 0 : static_cast<std::size_t>(count);
  in.budget().charge(parts, 64);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const bool has_more = i < size % parts;
    const std::size_t end = begin + size / parts + (has_more ? 1 : 0);
    std::vector<Object> slice(items.begin() + static_cast<std::ptrdiff_t>(begin),
                              items.begin() + static_cast<std::ptrdiff_t>(end));
    if (!fill.is_none() && !has_more) slice.push_back(fill);
    slices.push_back(make_list(in.budget(), std::move(slice)));
    begin = end;
  }
  return make_iterator(in.budget(), std::move(slices));
}

// Makes a tuple of a key and a list of the items that have the key. Templates also read the two as the tuple's
// attributes `grouper` and `list`.
Object make_group(Budget& budget, Object key, std::vector<Object> members) {
  const Object pair = make_tuple(budget, {std::move(key), make_list(budget, std::move(members))});
  SequenceObject group = *pair.get_if<Tuple>()->items;
  group.is_group = true;
  return Tuple{std::make_shared<const SequenceObject>(std::move(group))};
}

Object filter_groupby(Interpreter& in, const Object& value, Parameters& given) {
  const Object attribute = given.require("attribute");
  const Object otherwise = given.read("default").value_or(nullptr);
  const bool with_case = given.read_truth("case_sensitive", false);
  Key key(in, attribute, with_case);
  Key shown(in, attribute, true);
  if (!otherwise.is_none()) {
    key.set_default(otherwise);
    shown.set_default(otherwise);
  }
  std::vector<Object> items = read_items(in.budget(), value);
  std::vector<Object> keys;
  for (const Object& item : items) keys.push_back(key(item));
  items = sort_by_keys(in, std::move(items), keys, false);
  std::vector<Object> groups;
  for (std::size_t begin = 0; begin < items.size();) {
    const Object of_group = key(items[begin]);
    std::size_t end = begin;
    std::vector<Object> members;
    while (end < items.size() && are_equal(in.budget(), key(items[end]), of_group)) members.push_back(items[end++]);
    if (members.empty()) members.push_back(items[end++]);  // NaN does not equal itself
    groups.push_back(make_group(in.budget(), shown(items[begin]), std::move(members)));
    begin = end;
  }
  return make_list(in.budget(), std::move(groups));
}

// Returns an iterator without items. Ignores the arguments, as jinja2 does if the filtered value is empty.
Object make_empty_result(Interpreter& in, Parameters& given) {
  given.read_positional();
  given.read_keywords();
  return make_iterator(in.budget(), {});
}

Object filter_map(Interpreter& in, const Object& value, Parameters& given) {
  if (!is_true(value)) return make_empty_result(in, given);
  std::vector<Object> result;
  if (!given.has_positional()) {
    if (const auto attribute = given.read_keyword("attribute")) {
      Key key(in, *attribute, true);
      if (const auto otherwise = given.read_keyword("default"); otherwise && !otherwise->is_none())
        key.set_default(*otherwise);
      for (const Object& item : read_items(in.budget(), value)) result.push_back(key(item));
      return make_iterator(in.budget(), std::move(result));
    }
    fail("map requires a filter argument");
  }
  const TextPtr name = given.read_text("name");
  const std::vector<Object> positional = given.read_positional();
  const auto keywords = given.read_keywords();
  for (const Object& item : read_items(in.budget(), value)) {
    Parameters each(positional, keywords);
    result.push_back(in.apply_filter(name->bytes, item, each));
  }
  return make_iterator(in.budget(), std::move(result));
}

template <bool kKeeps, bool kByAttribute>
Object filter_select(Interpreter& in, const Object& value, Parameters& given) {
  if (!is_true(value)) return make_empty_result(in, given);
  Object attribute = nullptr;
  if (kByAttribute) {
    const auto name = given.read("attribute");
    if (!name) fail("Missing parameter for attribute name");
    attribute = *name;
  }
  const Key key(in, attribute, true);
  const TextPtr test = given.has_positional() ? given.read_text("test") : nullptr;
  const std::vector<Object> positional = given.read_positional();
  const auto keywords = given.read_keywords();
  std::vector<Object> result;
  for (Object& item : read_items(in.budget(), value)) {
    const Object looked_at = key(item);
    Parameters each(positional, keywords);
    const bool holds = test ? in.apply_test(test->bytes, looked_at, each) : is_true(looked_at);
    if (holds == kKeeps) result.push_back(std::move(item));
  }
  return make_iterator(in.budget(), std::move(result));
}

}  // namespace

const Filters& get_sequence_filters() {
  static const Filters kFilters = {
      {"length", filter_length},
      {"count", filter_length},
      {"first", filter_first},
      {"last", filter_last},
      {"random", filter_random},
      {"list", filter_list},
      {"reverse", filter_reverse},
      {"sort", filter_sort},
      {"dictsort", filter_dictsort},
      {"items", filter_items},
      {"unique", filter_unique},
      {"min", filter_extreme<false>},
      {"max", filter_extreme<true>},
      {"sum", filter_sum},
      {"batch", filter_batch},
      {"slice", filter_slice},
      {"groupby", filter_groupby},
      {"map", filter_map},
      {"select", filter_select<true, false>},
      {"reject", filter_select<false, false>},
      {"selectattr", filter_select<true, true>},
      {"rejectattr", filter_select<false, true>},
  };
  return kFilters;
}

}  // namespace poise::jinja
