// Equality, identity and order of objects.
#include <algorithm>

#include <fmt/format.h>

#include "jinja/object.hpp"

namespace poise::jinja {
namespace {

// Exact for every int64 and every double.
std::optional<long double> exact_number(const Object& object) {
  if (const auto whole = object.integer()) return static_cast<long double>(*whole);
  if (const auto* real = object.get_if<double>()) return static_cast<long double>(*real);
  return std::nullopt;
}

bool are_equal_items(Budget& budget, const std::vector<Object>& left, const std::vector<Object>& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!are_equal(budget, left[i], right[i])) return false;
  }
  return true;
}

bool are_equal_dicts(Budget& budget, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  for (const auto& [key, value] : left.entries()) {
    const Object* const other = right.find(budget, key);
    if (other == nullptr || !are_equal(budget, value, *other)) return false;
  }
  return true;
}

}  // namespace

bool are_equal(Budget& budget, const Object& left, const Object& right) {
  budget.step();
  if (const auto a = exact_number(left)) {
    const auto b = exact_number(right);
    return b && *a == *b;
  }
  if (const Text* const a = left.text()) {
    const Text* const b = right.text();
    if (b == nullptr || a->size() != b->size()) return false;
    budget.step(a->size() / 64);
    return a->bytes == b->bytes;
  }
  if (left.storage().index() != right.storage().index()) return false;
  if (left.is_undefined() || left.is_none()) return true;
  if (const auto* items = left.sequence()) return are_equal_items(budget, *items, *right.sequence());
  if (const auto* dict = left.get_if<DictPtr>()) return are_equal_dicts(budget, **dict, **right.get_if<DictPtr>());
  if (const auto* range = left.get_if<Range>()) {
    const Range& other = *right.get_if<Range>();
    const std::int64_t size = range->size();
    if (size != other.size()) return false;
    return size == 0 || (range->start == other.start && (size == 1 || range->step == other.step));
  }
  if (const auto* view = left.get_if<DictView>()) {
    const DictView& other = *right.get_if<DictView>();
    if (view->of != other.of || view->of == DictView::Of::values) return false;
    if (view->of == DictView::Of::items) return are_equal_dicts(budget, *view->dict, *other.dict);
    if (view->dict->entries().size() != other.dict->entries().size()) return false;
    return std::ranges::all_of(view->dict->entries(), [&](const Dict::Entry& entry) {
      return other.dict->find(budget, entry.first) != nullptr;
    });
  }
  return is_same(left, right);
}

bool is_same(const Object& left, const Object& right) {
  if (left.storage().index() != right.storage().index()) return false;
  struct Same {
    const Object& right;
    bool operator()(const Undefined& of) const { return of.reason == right.get_if<Undefined>()->reason; }
    bool operator()(std::nullptr_t) const { return true; }
    bool operator()(bool of) const { return of == *right.get_if<bool>(); }
    bool operator()(std::int64_t of) const { return of == *right.get_if<std::int64_t>(); }
    bool operator()(double of) const { return of == *right.get_if<double>(); }
    bool operator()(const TextPtr& of) const { return of->bytes == right.text()->bytes; }  // mostly interned
    bool operator()(const List& of) const { return of.items == right.get_if<List>()->items; }
    bool operator()(const Tuple& of) const { return of.items == right.get_if<Tuple>()->items; }
    bool operator()(const DictPtr& of) const { return of == *right.get_if<DictPtr>(); }
    bool operator()(const Range&) const { return false; }
    bool operator()(const DictView&) const { return false; }
    bool operator()(const IteratorPtr& of) const { return of == *right.get_if<IteratorPtr>(); }
    bool operator()(const Namespace* of) const { return of == *right.get_if<Namespace*>(); }
    bool operator()(const ThingPtr& of) const { return of == *right.get_if<ThingPtr>(); }
  };
  return std::visit(Same{right}, left.storage());
}

bool is_less(Budget& budget, const Object& left, const Object& right, std::string_view sign) {
  budget.step();
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  const auto a = exact_number(left);
  const auto b = exact_number(right);
  if (a && b) return *a < *b;
  if (left.text() != nullptr && right.text() != nullptr) {
    budget.step(std::min(left.text()->size(), right.text()->size()) / 64);
    return left.text()->bytes < right.text()->bytes;
  }
  if ((left.is<List>() && right.is<List>()) || (left.is<Tuple>() && right.is<Tuple>())) {
    const std::vector<Object>& from = *left.sequence();
    const std::vector<Object>& to = *right.sequence();
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      if (!are_equal(budget, from[i], to[i])) return is_less(budget, from[i], to[i], sign);
    }
    return from.size() < to.size();
  }
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", sign, type_name(left), type_name(right)));
}

}  // namespace poise::jinja
