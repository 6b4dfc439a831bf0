// Methods of dictionaries, lists, tuples and ranges.
#include <map>

#include <fmt/format.h>

#include "jinja/things.hpp"

namespace poise::jinja {
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
