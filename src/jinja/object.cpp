#include "jinja/object.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace poise::jinja {
namespace {

constexpr std::size_t kItemBytes = 64;  // the approximate memory of an item in a container

SequencePtr make_sequence(Budget& budget, std::vector<Object> items) {
  budget.charge(items.size() + 1, kItemBytes);
  const unsigned depth = compute_container_depth(items);
  return std::make_shared<const SequenceObject>(SequenceObject{std::move(items), depth});
}

// Stands for an integer of a conversation that is too large for a template.
class LargeNumber final : public Thing {
 public:
  explicit LargeNumber(std::uint64_t number) : number_(number) {}

  std::string type() const override { refuse(); }
  std::string describe() const override { refuse(); }
  Object call(Interpreter&, Parameters&) override { refuse(); }
  void check_usable() const override { refuse(); }

 private:
  [[noreturn]] void refuse() const { fail(fmt::format("the number {} is too large for a template", number_)); }

  std::uint64_t number_;
};

}  // namespace

unsigned compute_container_depth(unsigned depth) {
  if (depth >= kMaxObjectDepth) throw Failure(FailureKind::limit, "the template nests values too deeply");
  return depth + 1;
}

unsigned compute_container_depth(const std::vector<Object>& items) {
  unsigned most = 0;
  for (const Object& item : items) most = std::max(most, measure_depth(item));
  return compute_container_depth(most);
}

std::optional<Object> Thing::find_attribute(Interpreter&, std::string_view) { return std::nullopt; }
std::vector<Object> Thing::pop_items(Budget&, std::size_t) { return {}; }

std::int64_t RangeObject::size() const {
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

const std::vector<Object>* Object::sequence() const {
  if (const auto* list = get_if<List>()) return &list->items->items;
  if (const auto* tuple = get_if<Tuple>()) return &tuple->items->items;
  return nullptr;
}

std::optional<std::int64_t> Object::get_integer() const {
  if (const auto* number = get_if<std::int64_t>()) return *number;
  if (const auto* truth = get_if<bool>()) return *truth ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Object::get_number() const {
  if (const auto* real = get_if<double>()) return *real;
  if (const auto whole = get_integer()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::size_t Dict::find_place(Budget& budget, const Object& key) const {
  if (const Text* const text = key.text()) {
    const auto found = texts_.find(text->bytes);
    return found == texts_.end() ? entries_.size() : found->second;
  }
  check_hashable(budget, key);
  if (!has_other_keys_) return entries_.size();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (are_equal(budget, entries_[i].first, key)) return i;
  }
  return entries_.size();
}

const Object* Dict::find(Budget& budget, const Object& key) const {
  const std::size_t at = find_place(budget, key);
  return at == entries_.size() ? nullptr : &entries_[at].second;
}

const Object* Dict::find(std::string_view key) const {
  const auto found = texts_.find(std::string(key));
  return found == texts_.end() ? nullptr : &entries_[found->second].second;
}

void Dict::set(Budget& budget, Object key, Object value) {
  depth_ = std::max(depth_, compute_container_depth(std::max(measure_depth(key), measure_depth(value))));
  const std::size_t at = find_place(budget, key);
  if (at < entries_.size()) {
    entries_[at].second = std::move(value);
    return;
  }
  budget.charge(2 * kItemBytes);
  if (const Text* const text = key.text()) {
    texts_.emplace(text->bytes, at);
  } else {
    has_other_keys_ = true;
  }
  entries_.emplace_back(std::move(key), std::move(value));
}

Object make_undefined(std::string reason) { return Undefined{std::make_shared<const std::string>(std::move(reason))}; }
Object make_list(Budget& budget, std::vector<Object> items) { return List{make_sequence(budget, std::move(items))}; }
Object make_tuple(Budget& budget, std::vector<Object> items) { return Tuple{make_sequence(budget, std::move(items))}; }
Object make_dict(Dict dict) { return DictPtr(std::make_shared<const Dict>(std::move(dict))); }

Object make_iterator(Budget& budget, std::vector<Object> items, std::string type) {
  budget.charge(items.size() + 1, kItemBytes);
  const unsigned depth = compute_container_depth(items);
  return IteratorPtr(std::make_shared<Iterator>(Iterator{std::move(type), std::move(items), 0, depth}));
}

unsigned measure_depth(const Object& object) {
  if (const auto* list = object.get_if<List>()) return list->items->depth;
  if (const auto* tuple = object.get_if<Tuple>()) return tuple->items->depth;
  if (const auto* dict = object.get_if<DictPtr>()) return (*dict)->depth();
  if (const auto* view = object.get_if<DictView>()) return compute_container_depth(view->dict->depth());
  if (const auto* iterator = object.get_if<IteratorPtr>()) return (*iterator)->depth;
  if (const auto* thing = object.get_if<ThingPtr>()) return (*thing)->depth();
  return 0;
}

Object make_object(Budget& budget, const Value& value, bool is_input) {
  const auto make_text = [&](std::string bytes) {
    budget.charge(2 * bytes.size());
    return is_input ? mark_as_input(std::move(bytes)) : Text{std::move(bytes)};
  };
  if (const auto* truth = value.get_if<bool>()) return *truth;
  if (const auto* number = value.get_if<std::int64_t>()) return *number;
  if (const auto* number = value.get_if<std::uint64_t>()) {
    if (*number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return static_cast<std::int64_t>(*number);
    return ThingPtr(std::make_shared<LargeNumber>(*number));
  }
  if (const auto* number = value.get_if<double>()) return *number;
  if (const auto* found = value.get_if<std::string>()) return make_text(*found);
  if (const auto* array = value.get_if<Value::Array>()) {
    std::vector<Object> items;
    for (const Value& item : *array) items.push_back(make_object(budget, item, is_input));
    return make_list(budget, std::move(items));
  }
  if (const auto* map = value.get_if<Attributes>()) {
    Dict dict;
    for (const auto& [key, item] : *map) dict.set(budget, make_text(key), make_object(budget, item, is_input));
    return make_dict(std::move(dict));
  }
  return nullptr;
}

std::string get_type_name(const Object& object) {
  struct Name {
    std::string operator()(const Undefined&) const { return "Undefined"; }
    std::string operator()(std::nullptr_t) const { return "NoneType"; }
    std::string operator()(bool) const { return "bool"; }
    std::string operator()(std::int64_t) const { return "int"; }
    std::string operator()(double) const { return "float"; }
    std::string operator()(const TextPtr& text) const { return text->is_markup ? "Markup" : "str"; }
    std::string operator()(const List&) const { return "list"; }
    std::string operator()(const Tuple&) const { return "tuple"; }
    std::string operator()(const DictPtr&) const { return "dict"; }
    std::string operator()(const RangeObject&) const { return "range"; }
    std::string operator()(const DictView& view) const {
      return view.of == DictView::Of::keys     ? "dict_keys"
             : view.of == DictView::Of::values ? "dict_values"
                                               : "dict_items";
    }
    std::string operator()(const IteratorPtr& iterator) const { return iterator->type; }
    std::string operator()(const Namespace*) const { return "Namespace"; }
    std::string operator()(const ThingPtr& thing) const { return thing->type(); }
  };
  return std::visit(Name{}, object.storage());
}

bool is_true(const Object& object) {
  if (object.is_undefined() || object.is_none()) return false;
  if (const auto number = object.get_number()) return *number != 0;
  const auto length = find_length(object);
  return !length || *length > 0;
}

std::optional<std::size_t> find_length(const Object& object) {
  if (object.is_undefined()) return 0;
  if (const Text* const text = object.text()) return count_characters(text->bytes);
  if (const auto* items = object.sequence()) return items->size();
  if (const auto* dict = object.get_if<DictPtr>()) return (*dict)->entries().size();
  if (const auto* view = object.get_if<DictView>()) return view->dict->entries().size();
  if (const auto* range = object.get_if<RangeObject>()) return static_cast<std::size_t>(range->size());
  if (const auto* thing = object.get_if<ThingPtr>()) return (*thing)->length();
  return std::nullopt;
}

bool is_iterable(const Object& object) {
  return object.is_undefined() || object.text() != nullptr || object.sequence() != nullptr || object.is<DictPtr>() ||
         object.is<DictView>() || object.is<RangeObject>() || is_iterator(object);
}

bool is_iterator(const Object& object) {
  const auto* const thing = object.get_if<ThingPtr>();
  return object.is<IteratorPtr>() || (thing != nullptr && (*thing)->is_iterable());
}

std::optional<Object> pop_item(Budget& budget, const Object& object) {
  budget.step();
  if (const auto* thing = object.get_if<ThingPtr>()) {
    std::vector<Object> items = (*thing)->pop_items(budget, 1);
    return items.empty() ? std::nullopt : std::optional(std::move(items.front()));
  }
  Iterator& from = **object.get_if<IteratorPtr>();
  return from.next == from.items.size() ? std::nullopt : std::optional(from.items[from.next++]);
}

std::vector<Object> read_items(Budget& budget, const Object& object) {
  std::vector<Object> items;
  const auto charge_items = [&](std::size_t count) {
    budget.step(count);
    budget.charge(count, kItemBytes);
    items.reserve(count);
  };
  if (object.is_undefined()) return items;
  if (const auto* sequence = object.sequence()) {
    charge_items(sequence->size());
    items = *sequence;
  } else if (const Text* const text = object.text()) {
    const std::vector<std::size_t> begins = find_characters(text->bytes);
    charge_items(begins.size());
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) items.emplace_back(copy_part(*text, begins[i], begins[i + 1]));
  } else if (const auto* range = object.get_if<RangeObject>()) {
    charge_items(static_cast<std::size_t>(range->size()));
    for (std::int64_t i = 0; i < range->size(); ++i) items.emplace_back(range->at(i));
  } else if (const auto* iterator = object.get_if<IteratorPtr>()) {
    Iterator& from = **iterator;
    charge_items(from.items.size() - from.next);
    items.assign(from.items.begin() + static_cast<std::ptrdiff_t>(from.next), from.items.end());
    from.next = from.items.size();
  } else if (is_iterator(object)) {
    items = (*object.get_if<ThingPtr>())->pop_items(budget, std::numeric_limits<std::size_t>::max());
    charge_items(items.size());
  } else if (object.is<DictPtr>() || object.is<DictView>()) {
    const auto* const view = object.get_if<DictView>();
    const Dict& dict = view != nullptr ? *view->dict : **object.get_if<DictPtr>();
    charge_items(dict.entries().size());
    for (const auto& [key, value] : dict.entries()) {
      if (view != nullptr && view->of == DictView::Of::items) {
        items.push_back(make_tuple(budget, {key, value}));
      } else {
        items.push_back(view != nullptr && view->of == DictView::Of::values ? value : key);
      }
    }
  } else {
    fail(fmt::format("'{}' object is not iterable", get_type_name(object)));
  }
  return items;
}

namespace {

// Returns the object itself, or one of a tuple's items, if it has no hash; null if all have one.
const Object* find_unhashable(Budget& budget, const Object& object) {
  budget.step();
  if (object.is<List>() || object.is<DictPtr>()) return &object;
  if (const auto* view = object.get_if<DictView>()) return view->of == DictView::Of::values ? nullptr : &object;
  if (const auto* tuple = object.get_if<Tuple>()) {
    for (const Object& item : tuple->items->items) {
      if (const Object* const found = find_unhashable(budget, item)) return found;
    }
  }
  return nullptr;
}

}  // namespace

bool is_hashable(Budget& budget, const Object& object) { return find_unhashable(budget, object) == nullptr; }

void check_hashable(Budget& budget, const Object& object) {
  if (const Object* const found = find_unhashable(budget, object))
    fail(fmt::format("unhashable type: '{}'", get_type_name(*found)));
}

void check_usable(const Object& object) {
  if (const auto* thing = object.get_if<ThingPtr>()) (*thing)->check_usable();
}

void fail_undefined(const Object& object) {
  const auto* const found = object.get_if<Undefined>();
  fail(found != nullptr && found->reason ? *found->reason : "the value is undefined");
}

}  // namespace poise::jinja
