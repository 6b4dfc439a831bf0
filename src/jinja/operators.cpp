#include "jinja/operators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "jinja/formatting.hpp"
#include "jinja/object.hpp"

namespace poise::jinja {
namespace {

[[noreturn]] void fail_operands(std::string_view sign, const Object& left, const Object& right) {
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", sign, get_type_name(left),
                   get_type_name(right)));
}

[[noreturn]] void fail_too_large() { fail("an integer does not fit 64 bits"); }

[[noreturn]] void fail_division_by_zero(bool is_modulo) {
  fail(is_modulo ? "integer modulo by zero" : "division by zero");
}

std::int64_t raise_to_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_too_large();
  }
  return result;
}

Object compute_integers(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (sign == "+") {
    if (__builtin_add_overflow(a, b, &result)) fail_too_large();
  } else if (sign == "-") {
    if (__builtin_sub_overflow(a, b, &result)) fail_too_large();
  } else if (sign == "*") {
    if (__builtin_mul_overflow(a, b, &result)) fail_too_large();
  } else if (sign == "/") {
    if (b == 0) fail_division_by_zero(false);
    return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
  } else if (sign == "**") {
    if (b < 0) {
      if (a == 0) fail("0.0 cannot be raised to a negative power");
      return std::pow(static_cast<double>(a), static_cast<double>(b));
    }
    if (a == 0 || a == 1) return b == 0 ? std::int64_t{1} : a;
    if (a == -1) return b % 2 == 0 ? std::int64_t{1} : std::int64_t{-1};
    if (b > 64) fail_too_large();
    return raise_to_power(a, b);
  } else {
    if (b == 0) fail_division_by_zero(true);
    if (a == std::numeric_limits<std::int64_t>::min() && b == -1) fail_too_large();
    const std::int64_t rest = a % b;
    const bool goes_down = rest != 0 && (rest < 0) != (b < 0);
    if (sign == "%") return goes_down ? rest + b : rest;
    return a / b - (goes_down ? 1 : 0);
  }
  return result;
}

double compute_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

// Divides as CPython's float_floor_div() does.
double divide_to_floor(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Object compute_reals(std::string_view sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "**") {
    if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
    const double result = std::pow(a, b);
    if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) fail("a power is a complex number");
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("a power is too large for a float64 number");
    return result;
  }
  if (b == 0)
    fail(sign == "%" ? "float modulo" : sign == "//" ? "float floor division by zero" : "float division by zero");
  if (sign == "/") return a / b;
  return sign == "%" ? compute_modulo(a, b) : divide_to_floor(a, b);
}

std::size_t multiply_size(std::int64_t count, std::size_t size) {
  if (count <= 0 || size == 0) return 0;
  std::size_t all = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(count), size, &all))
    throw Failure(FailureKind::limit, "the template makes too many values");
  return all;
}

Object repeat_sequence(Budget& budget, const Object& object, std::int64_t count) {
  if (const Text* const text = object.text()) {
    budget.charge(multiply_size(count, 2 * text->size() + 1));
    Text all;
    for (std::int64_t i = 0; i < count && !text->empty(); ++i) append(all, *text);
    all.is_markup = text->is_markup;
    return all;
  }
  const std::vector<Object>& items = *object.sequence();
  budget.charge(multiply_size(count, items.size()), 64);
  std::vector<Object> all;
  for (std::int64_t i = 0; i < count && !items.empty(); ++i) all.insert(all.end(), items.begin(), items.end());
  return object.is<List>() ? make_list(budget, std::move(all)) : make_tuple(budget, std::move(all));
}

Object add_objects(Budget& budget, const Object& left, const Object& right) {
  if (left.text() != nullptr && right.text() != nullptr) {
    budget.charge(2 * (left.text()->size() + right.text()->size()));
    const bool is_markup = left.text()->is_markup || right.text()->is_markup;
    Text joined;
    append(joined, is_markup ? escape_markup(budget, *left.text()) : *left.text());
    append(joined, is_markup ? escape_markup(budget, *right.text()) : *right.text());
    joined.is_markup = is_markup;
    return joined;
  }
  if ((left.is<List>() && right.is<List>()) || (left.is<Tuple>() && right.is<Tuple>())) {
    std::vector<Object> items = *left.sequence();
    items.insert(items.end(), right.sequence()->begin(), right.sequence()->end());
    return left.is<List>() ? make_list(budget, std::move(items)) : make_tuple(budget, std::move(items));
  }
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (left.text() != nullptr) fail(fmt::format("can only concatenate str (not \"{}\") to str", get_type_name(right)));
  fail_operands("+", left, right);
}

}  // namespace

Object compute(Interpreter& in, std::string_view sign, const Object& left, const Object& right) {
  const auto a = left.get_integer();
  const auto b = right.get_integer();
  if (a && b) return compute_integers(sign, *a, *b);
  const auto x = left.get_number();
  const auto y = right.get_number();
  if (x && y) return compute_reals(sign, *x, *y);
  const auto is_repeatable = [](const Object& object) {
    return object.text() != nullptr || object.sequence() != nullptr;
  };
  if (sign == "+") return add_objects(in.budget(), left, right);
  if (sign == "*" && is_repeatable(left) && b) return repeat_sequence(in.budget(), left, *b);
  if (sign == "*" && is_repeatable(right) && a) return repeat_sequence(in.budget(), right, *a);
  if (sign == "%" && left.text() != nullptr) return format_percent(in.budget(), *left.text(), right);
  fail_operands(sign == "**" ? "** or pow()" : sign, left, right);
}

Object apply_sign(const Object& value, bool is_negative) {
  if (const auto* real = value.get_if<double>()) return is_negative ? -*real : *real;
  if (const auto whole = value.get_integer()) {
    if (is_negative && *whole == std::numeric_limits<std::int64_t>::min()) fail_too_large();
    return is_negative ? -*whole : *whole;
  }
  if (value.is_undefined()) fail_undefined(value);
  fail(fmt::format("bad operand type for unary {}: '{}'", is_negative ? '-' : '+', get_type_name(value)));
}

bool compare(Budget& budget, std::string_view sign, const Object& left, const Object& right) {
  if (sign == "==") return are_equal(budget, left, right);
  if (sign == "!=") return !are_equal(budget, left, right);
  if (sign == "<") return is_less(budget, left, right, sign);
  if (sign == ">") return is_less(budget, right, left, sign);
  if (sign == "<=") return is_less(budget, left, right, sign) || are_equal(budget, left, right);
  return is_less(budget, right, left, sign) || are_equal(budget, left, right);
}

namespace {

struct Bounds {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
  std::int64_t count;
};

// Finds the bounds as Python's slice.indices() does.
Bounds find_bounds(std::int64_t length, const Object& start, const Object& stop, const Object& step) {
  const auto read_index = [](const Object& object) {
    const auto number = object.get_integer();
    if (!number) fail("slice indices must be integers or None or have an __index__ method");
    return *number;
  };
  const std::int64_t by = step.is_none() ? 1 : read_index(step);
  if (by == 0) fail("slice step cannot be zero");
  const std::int64_t least = by < 0 ? -1 : 0;
  const std::int64_t most = by < 0 ? length - 1 : length;
  const auto clamp_index = [&](const Object& object, std::int64_t otherwise) {
    if (object.is_none()) return otherwise;
    std::int64_t at = read_index(object);
    if (at < 0) return std::max(least, at + length);
    return std::min(at, most);
  };
  const std::int64_t from = clamp_index(start, by < 0 ? most : least);
  const std::int64_t to = clamp_index(stop, by < 0 ? least : most);
  return {from, to, by,
          (by > 0 ? RangeObject{from, to, by} : RangeObject{from, to, std::max(by, -(length + 1))}).size()};
}

}  // namespace

Object slice_object(Budget& budget, const Object& object, const Object& start, const Object& stop, const Object& step) {
  if (object.is_undefined()) fail_undefined(object);
  if (const auto* items = object.sequence()) {
    const Bounds bounds = find_bounds(static_cast<std::int64_t>(items->size()), start, stop, step);
    std::vector<Object> part;
    for (std::int64_t i = 0; i < bounds.count; ++i)
      part.push_back((*items)[static_cast<std::size_t>(bounds.start + i * bounds.step)]);
    return object.is<List>() ? make_list(budget, std::move(part)) : make_tuple(budget, std::move(part));
  }
  if (const Text* const text = object.text()) {
    budget.charge(2 * text->size());
    budget.step(text->size() / 16);
    const std::vector<std::size_t> begins = find_characters(text->bytes);
    const Bounds bounds = find_bounds(static_cast<std::int64_t>(begins.size()) - 1, start, stop, step);
    Text part;
    for (std::int64_t i = 0; i < bounds.count; ++i) {
      const auto at = static_cast<std::size_t>(bounds.start + i * bounds.step);
      append(part, *text, begins[at], begins[at + 1]);
    }
    part.is_markup = text->is_markup;
    return part;
  }
  if (const auto* range = object.get_if<RangeObject>()) {
    const Bounds bounds = find_bounds(range->size(), start, stop, step);
    std::int64_t by = 0;
    if (__builtin_mul_overflow(range->step, bounds.step, &by)) fail_too_large();
    return RangeObject{range->at(bounds.start), range->at(bounds.stop), by, budget.number_object()};
  }
  fail(fmt::format("'{}' object is not subscriptable", get_type_name(object)));
}

// The following functions compare objects.

namespace {

// Returns a number in a type that holds every int64 and every double exactly; std::nullopt for other objects.
std::optional<long double> get_exact_number(const Object& object) {
  if (const auto whole = object.get_integer()) return static_cast<long double>(*whole);
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
  if (const auto a = get_exact_number(left)) {
    const auto b = get_exact_number(right);
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
  if (const auto* range = left.get_if<RangeObject>()) {
    const RangeObject& other = *right.get_if<RangeObject>();
    const std::int64_t size = range->size();
    if (size != other.size()) return false;
    return size == 0 || (range->start == other.start && (size == 1 || range->step == other.step));
  }
  if (const auto* view = left.get_if<DictView>()) {
    const DictView& other = *right.get_if<DictView>();
    if (view->of == DictView::Of::values || other.of == DictView::Of::values) return view->identity == other.identity;
    if (view->of != other.of) return false;
    if (view->of == DictView::Of::items) return are_equal_dicts(budget, *view->dict, *other.dict);
    if (view->dict->entries().size() != other.dict->entries().size()) return false;
    return std::ranges::all_of(view->dict->entries(), [&](const Dict::Entry& entry) {
      return other.dict->find(budget, entry.first) != nullptr;
    });
  }
  return is_same(left, right);
}

namespace {

struct Same {
  const Object& right;
  bool operator()(const Undefined& undefined) const { return undefined.reason == right.get_if<Undefined>()->reason; }
  // In Python, equal texts are often one object.
  bool operator()(const TextPtr& text) const { return text->bytes == right.text()->bytes; }
  bool operator()(const List& list) const { return list.items == right.get_if<List>()->items; }
  bool operator()(const Tuple& tuple) const {
    const SequencePtr& other = right.get_if<Tuple>()->items;
    return tuple.items == other || (tuple.items->items.empty() && other->items.empty());  // Python has one ()
  }
  bool operator()(const RangeObject& range) const { return range.identity == right.get_if<RangeObject>()->identity; }
  bool operator()(const DictView& view) const { return view.identity == right.get_if<DictView>()->identity; }
  template <typename Kept>
  bool operator()(const Kept& kept) const {
    return kept == *right.get_if<Kept>();
  }
};

}  // namespace

bool is_same(const Object& left, const Object& right) {
  return left.storage().index() == right.storage().index() && std::visit(Same{right}, left.storage());
}

bool is_less(Budget& budget, const Object& left, const Object& right, std::string_view sign) {
  budget.step();
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  const auto a = get_exact_number(left);
  const auto b = get_exact_number(right);
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
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", sign, get_type_name(left),
                   get_type_name(right)));
}

}  // namespace poise::jinja
