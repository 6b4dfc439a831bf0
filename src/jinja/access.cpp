// Looks up attributes and items of objects, with Jinja's rules.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

Method method_of(const Object& of, std::string_view name) {
  if (of.text() != nullptr) {
    const Method found = text_method(name);
    return found != nullptr ? found : text_question(name);
  }
  if (of.is<DictPtr>()) return dict_method(name);
  if (of.sequence() != nullptr || of.is<RangeObject>()) return sequence_method(name);
  return nullptr;
}

// Returns true for methods that change a list or dictionary; the sandbox refuses them.
bool changes(const Object& of, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear", "pop",    "reverse",
                                                               "insert", "sort",  "extend", "remove"};
  static constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault", "update"};
  if (of.is<List>()) return std::ranges::find(kOfLists, name) != kOfLists.end();
  return of.is<DictPtr>() && std::ranges::find(kOfDicts, name) != kOfDicts.end();
}

// Returns the name in Jinja's error messages.
std::string described(const Object& of) { return of.is_none() ? "None" : type_name(of) + " object"; }

std::optional<Object> number_attribute(const Object& of, std::string_view name) {
  if (of.is<double>()) {
    if (name == "real") return of;
    if (name == "imag") return 0.0;
    return std::nullopt;
  }
  const auto whole = of.integer();
  if (!whole) return std::nullopt;
  if (name == "real" || name == "numerator") return *whole;
  if (name == "imag") return std::int64_t{0};
  if (name == "denominator") return std::int64_t{1};
  return std::nullopt;
}

// Looks up as Python's getattr().
std::optional<Object> python_attribute(Interpreter& in, const Object& of, std::string_view name) {
  if (auto* const* space = of.get_if<Namespace*>()) {
    for (const auto& [key, value] : (*space)->entries) {
      if (key.bytes == name) return value;
    }
    return std::nullopt;
  }
  if (const auto* thing = of.get_if<ThingPtr>()) return (*thing)->attribute(in, name);
  if (const auto* range = of.get_if<RangeObject>()) {
    if (name == "start") return range->start;
    if (name == "stop") return range->stop;
    if (name == "step") return range->step;
  }
  if (const auto* tuple = of.get_if<Tuple>(); tuple != nullptr && tuple->items->is_group) {
    if (name == "grouper") return tuple->items->items[0];
    if (name == "list") return tuple->items->items[1];
  }
  if (auto found = number_attribute(of, name)) return found;
  const Method method = method_of(of, name);
  if (method == nullptr) return std::nullopt;
  if (of.text() != nullptr && of.text()->is_markup) return markup_method(of, name, method);
  const auto body = [of, method](Interpreter& inner, Parameters& given) { return method(inner, of, given); };
  return ThingPtr(std::make_shared<Function>(std::string(name), body, depth_of(of)));
}

Object refused(const Object& of, std::string_view name) {
  return undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(of)));
}

bool is_hidden(std::string_view name) { return name.starts_with("__") && name.ends_with("__"); }

Object missing_attribute(const Object& of, std::string_view name) {
  return undefined(fmt::format("'{}' has no attribute '{}'", described(of), name));
}

// Looks up as a subscript; std::nullopt if there is no such item.
std::optional<Object> subscripted(Budget& budget, const Object& of, const Object& key) {
  if (of.is_undefined()) fail_undefined(of);
  if (const auto* dict = of.get_if<DictPtr>()) {
    if (key.is<List>() || key.is<DictPtr>() || key.is<DictView>()) return std::nullopt;
    const Object* const found = (*dict)->find(budget, key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  auto index = key.integer();
  if (!index) return std::nullopt;
  const auto at = [&](std::size_t size) -> std::optional<std::size_t> {
    const auto length = static_cast<std::int64_t>(size);
    const std::int64_t place = *index < 0 ? *index + length : *index;
    return place >= 0 && place < length ? std::optional(static_cast<std::size_t>(place)) : std::nullopt;
  };
  if (const auto* items = of.sequence()) {
    const auto place = at(items->size());
    return place ? std::optional((*items)[*place]) : std::nullopt;
  }
  if (const Text* const text = of.text()) {
    budget.step(text->size() / 16);
    const std::vector<std::size_t> begins = characters(text->bytes);
    const auto place = at(begins.size() - 1);
    if (!place) return std::nullopt;
    Text character = part(*text, begins[*place], begins[*place + 1]);
    character.is_markup = text->is_markup;
    return Object(std::move(character));
  }
  if (const auto* range = of.get_if<RangeObject>()) {
    const auto place = at(static_cast<std::size_t>(range->size()));
    return place ? std::optional<Object>(range->at(static_cast<std::int64_t>(*place))) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Object Interpreter::attribute(const Object& of, std::string_view name) {
  if (of.is_undefined()) fail_undefined(of);
  if (is_hidden(name) || changes(of, name)) return refused(of, name);
  if (auto found = python_attribute(*this, of, name)) return *std::move(found);
  if (of.is<DictPtr>()) {
    if (const Object* const found = (*of.get_if<DictPtr>())->find(name)) return *found;
  }
  return missing_attribute(of, name);
}

Object Interpreter::item(const Object& of, const Object& key) {
  if (auto found = subscripted(budget_, of, key)) return *std::move(found);
  if (const Text* const name = key.text()) {
    if (is_hidden(name->bytes) || changes(of, name->bytes)) return refused(of, name->bytes);
    if (auto found = python_attribute(*this, of, name->bytes)) return *std::move(found);
    return missing_attribute(of, name->bytes);
  }
  return undefined(fmt::format("{} has no element {}", described(of), repr(budget_, key)));
}

// Methods of dictionaries, lists, tuples and ranges.

namespace {

const DictPtr& dict_of(const Object& self) { return *self.get_if<DictPtr>(); }

template <DictView::Of kOf>
Object view(Interpreter&, const Object& self, Parameters& given) {
  given.finish();
  return DictView{kOf, dict_of(self)};
}

Object get(Interpreter& in, const Object& self, Parameters& given) {
  const Object key = given.required("key");
  const Object otherwise = given.take("default").value_or(nullptr);
  given.finish();
  const Object* const found = dict_of(self)->find(in.budget(), key);
  return found == nullptr ? otherwise : *found;
}

Object copy_dict(Interpreter& in, const Object& self, Parameters& given) {
  given.finish();
  in.budget().charge(dict_of(self)->entries().size(), 128);
  return make_dict(*dict_of(self));
}

Object copy_list(Interpreter& in, const Object& self, Parameters& given) {
  if (!self.is<List>()) fail(fmt::format("'{}' object has no attribute 'copy'", type_name(self)));
  given.finish();
  return make_list(in.budget(), *self.sequence());
}

Object index_of(Interpreter& in, const Object& self, Parameters& given) {
  const Object value = given.required("value");
  given.finish();
  const std::vector<Object> items = items_of(in.budget(), self);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (are_equal(in.budget(), items[i], value)) return static_cast<std::int64_t>(i);
  }
  fail(fmt::format("{} is not in {}", repr(in.budget(), value), type_name(self)));
}

Object count_items(Interpreter& in, const Object& self, Parameters& given) {
  const Object value = given.required("value");
  given.finish();
  std::int64_t count = 0;
  for (const Object& item : items_of(in.budget(), self)) count += are_equal(in.budget(), item, value) ? 1 : 0;
  return count;
}

}  // namespace

Object dict_from_keys(Interpreter& in, const Object&, Parameters& given) {
  const Object keys = given.required("iterable");
  const Object value = given.take("value").value_or(nullptr);
  given.finish();
  Dict dict;
  for (const Object& key : items_of(in.budget(), keys)) dict.set(in.budget(), key, value);
  return make_dict(std::move(dict));
}

Method dict_method(std::string_view name) {
  static const std::map<std::string_view, Method> kMethods = {
      {"keys", view<DictView::Of::keys>},
      {"values", view<DictView::Of::values>},
      {"items", view<DictView::Of::items>},
      {"get", get},
      {"copy", copy_dict},
      {"fromkeys", dict_from_keys},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

Method sequence_method(std::string_view name) {
  static const std::map<std::string_view, Method> kMethods = {
      {"index", index_of}, {"count", count_items}, {"copy", copy_list}};
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace poise::jinja
