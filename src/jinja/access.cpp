// Looks up attributes and items of objects, with Jinja's rules.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

Method find_method(const Object& object, std::string_view name) {
  if (object.text() != nullptr) return find_text_method(name);
  if (object.is<DictPtr>()) return find_dict_method(name);
  if (object.sequence() != nullptr || object.is<RangeObject>()) return find_sequence_method(name);
  return nullptr;
}

// Returns true for methods that change a list or dictionary; the sandbox refuses them.
bool is_changing_method(const Object& object, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear", "pop",    "reverse",
                                                               "insert", "sort",  "extend", "remove"};
  static constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault", "update"};
  if (object.is<List>()) return std::ranges::find(kOfLists, name) != kOfLists.end();
  return object.is<DictPtr>() && std::ranges::find(kOfDicts, name) != kOfDicts.end();
}

// Returns the name of the object's type as Jinja's error messages spell it.
std::string describe_type(const Object& object) {
  return object.is_none() ? "None" : get_type_name(object) + " object";
}

std::optional<Object> find_number_attribute(const Object& object, std::string_view name) {
  if (object.is<double>()) {
    if (name == "real") return object;
    if (name == "imag") return 0.0;
    return std::nullopt;
  }
  const auto whole = object.get_integer();
  if (!whole) return std::nullopt;
  if (name == "real" || name == "numerator") return *whole;
  if (name == "imag") return std::int64_t{0};
  if (name == "denominator") return std::int64_t{1};
  return std::nullopt;
}

// Looks up an attribute by name as Python's getattr() does.
std::optional<Object> find_python_attribute(Interpreter& in, const Object& object, std::string_view name) {
  if (auto* const* space = object.get_if<Namespace*>()) {
    for (const auto& [key, value] : (*space)->entries) {
      if (key.bytes == name) return value;
    }
    return std::nullopt;
  }
  if (const auto* thing = object.get_if<ThingPtr>()) return (*thing)->find_attribute(in, name);
  if (const auto* range = object.get_if<RangeObject>()) {
    if (name == "start") return range->start;
    if (name == "stop") return range->stop;
    if (name == "step") return range->step;
  }
  if (const auto* tuple = object.get_if<Tuple>(); tuple != nullptr && tuple->items->is_group) {
    if (name == "grouper") return tuple->items->items[0];
    if (name == "list") return tuple->items->items[1];
  }
  if (auto found = find_number_attribute(object, name)) return found;
  const Method method = find_method(object, name);
  if (method == nullptr) return std::nullopt;
  if (object.text() != nullptr && object.text()->is_markup) return make_markup_method(object, name, method);
  const auto body = [object, method](Interpreter& inner, Parameters& given) { return method(inner, object, given); };
  return ThingPtr(std::make_shared<Function>(std::string(name), body, measure_depth(object)));
}

Object make_refused_attribute(const Object& object, std::string_view name) {
  return make_undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, get_type_name(object)));
}

bool is_hidden(std::string_view name) { return name.starts_with("__") && name.ends_with("__"); }

Object make_missing_attribute(const Object& object, std::string_view name) {
  return make_undefined(fmt::format("'{}' has no attribute '{}'", describe_type(object), name));
}

// Returns object[key]. Returns std::nullopt where Python raises an error, which Jinja turns into an undefined value.
// Throws for an undefined object.
std::optional<Object> find_item_by_key(Budget& budget, const Object& object, const Object& key) {
  if (object.is_undefined()) fail_undefined(object);
  if (const auto* dict = object.get_if<DictPtr>()) {
    if (!is_hashable(budget, key)) return std::nullopt;
    const Object* const found = (*dict)->find(budget, key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  auto index = key.get_integer();
  if (!index) return std::nullopt;
  const auto find_place = [&](std::size_t size) -> std::optional<std::size_t> {
    const auto length = static_cast<std::int64_t>(size);
    const std::int64_t place = *index < 0 ? *index + length : *index;
    return place >= 0 && place < length ? std::optional(static_cast<std::size_t>(place)) : std::nullopt;
  };
  if (const auto* items = object.sequence()) {
    const auto place = find_place(items->size());
    return place ? std::optional((*items)[*place]) : std::nullopt;
  }
  if (const Text* const text = object.text()) {
    budget.step(text->size() / 16);
    const std::vector<std::size_t> begins = find_characters(text->bytes);
    const auto place = find_place(begins.size() - 1);
    if (!place) return std::nullopt;
    Text character = copy_part(*text, begins[*place], begins[*place + 1]);
    character.is_markup = text->is_markup;
    return Object(std::move(character));
  }
  if (const auto* range = object.get_if<RangeObject>()) {
    const auto place = find_place(static_cast<std::size_t>(range->size()));
    return place ? std::optional<Object>(range->at(static_cast<std::int64_t>(*place))) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Object Interpreter::find_attribute(const Object& object, std::string_view name) {
  if (object.is_undefined()) fail_undefined(object);
  if (is_hidden(name) || is_changing_method(object, name)) return make_refused_attribute(object, name);
  if (auto found = find_python_attribute(*this, object, name)) return *std::move(found);
  if (object.is<DictPtr>()) {
    if (const Object* const found = (*object.get_if<DictPtr>())->find(name)) return *found;
  }
  return make_missing_attribute(object, name);
}

Object Interpreter::find_item(const Object& object, const Object& key) {
  if (auto found = find_item_by_key(budget_, object, key)) return *std::move(found);
  if (const Text* const name = key.text()) {
    if (is_hidden(name->bytes) || is_changing_method(object, name->bytes))
      return make_refused_attribute(object, name->bytes);
    if (auto found = find_python_attribute(*this, object, name->bytes)) return *std::move(found);
    return make_missing_attribute(object, name->bytes);
  }
  return make_undefined(fmt::format("{} has no element {}", describe_type(object), format_repr(budget_, key)));
}

// The methods of dictionaries, lists, tuples and ranges follow.

namespace {

const DictPtr& get_dict(const Object& self) { return *self.get_if<DictPtr>(); }

template <DictView::Of kOf>
Object make_view(Interpreter& in, const Object& self, Parameters&) {
  return DictView{kOf, get_dict(self), in.budget().number_object()};
}

Object get_or_default(Interpreter& in, const Object& self, Parameters& given) {
  const Object key = given.require("key");
  const Object otherwise = given.read("default").value_or(nullptr);
  const Object* const found = get_dict(self)->find(in.budget(), key);
  return found == nullptr ? otherwise : *found;
}

Object copy_dict(Interpreter& in, const Object& self, Parameters&) {
  in.budget().charge(get_dict(self)->entries().size(), 128);
  return make_dict(*get_dict(self));
}

Object copy_list(Interpreter& in, const Object& self, Parameters&) {
  if (!self.is<List>()) fail(fmt::format("'{}' object has no attribute 'copy'", get_type_name(self)));
  return make_list(in.budget(), *self.sequence());
}

Object find_index(Interpreter& in, const Object& self, Parameters& given) {
  const Object value = given.require("value");
  const std::vector<Object> items = read_items(in.budget(), self);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (are_equal(in.budget(), items[i], value)) return static_cast<std::int64_t>(i);
  }
  fail(fmt::format("{} is not in {}", format_repr(in.budget(), value), get_type_name(self)));
}

Object count_items(Interpreter& in, const Object& self, Parameters& given) {
  const Object value = given.require("value");
  std::int64_t count = 0;
  for (const Object& item : read_items(in.budget(), self)) count += are_equal(in.budget(), item, value) ? 1 : 0;
  return count;
}

}  // namespace

Object make_dict_from_keys(Interpreter& in, const Object&, Parameters& given) {
  const Object keys = given.require("iterable");
  const Object value = given.read("value").value_or(nullptr);
  Dict dict;
  for (const Object& key : read_items(in.budget(), keys)) dict.set(in.budget(), key, value);
  return make_dict(std::move(dict));
}

Method find_dict_method(std::string_view name) {
  static const std::map<std::string_view, Method> kMethods = {
      {"keys", make_view<DictView::Of::keys>},
      {"values", make_view<DictView::Of::values>},
      {"items", make_view<DictView::Of::items>},
      {"get", get_or_default},
      {"copy", copy_dict},
      {"fromkeys", make_dict_from_keys},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

Method find_sequence_method(std::string_view name) {
  static const std::map<std::string_view, Method> kMethods = {
      {"index", find_index}, {"count", count_items}, {"copy", copy_list}};
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace poise::jinja
