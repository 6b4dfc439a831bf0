// Python's str() and repr().
#include <cmath>

#include <fmt/format.h>

#include "jinja/object.hpp"

namespace poise::jinja {
namespace {

// A character of a quoted text, escaped as in Python.
std::string quoted(char32_t code, char quote) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\\': return "\\\\";
    default: break;
  }
  if (code == static_cast<char32_t>(quote)) return std::string("\\") + quote;
  const auto number = static_cast<std::uint32_t>(code);
  if (is_printable(code)) {
    std::string text;
    append_code(text, code);
    return text;
  }
  if (number <= 0xFF) return fmt::format("\\x{:02x}", number);
  return number <= 0xFFFF ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

void append_items(Budget& budget, Text& out, const std::vector<Object>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) append(out, ", ");
    append_repr(budget, out, items[i]);
  }
}

void append_entries(Budget& budget, Text& out, const Dict& dict) {
  append(out, "{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) append(out, ", ");
    first = false;
    append_repr(budget, out, key);
    append(out, ": ");
    append_repr(budget, out, value);
  }
  append(out, "}");
}

struct Shown {
  Budget& budget;
  Text& out;

  void operator()(const Undefined&) const { append(out, "Undefined"); }
  void operator()(std::nullptr_t) const { append(out, "None"); }
  void operator()(bool value) const { append(out, value ? "True" : "False"); }
  void operator()(std::int64_t value) const { append(out, std::to_string(value)); }
  void operator()(double value) const { append(out, repr(value)); }
  void operator()(const TextPtr& text) const {
    budget.charge(2 * text->size());
    if (text->is_markup) append(out, "Markup(");
    append_repr(out, *text);
    if (text->is_markup) append(out, ")");
  }
  void operator()(const List& list) const {
    append(out, "[");
    append_items(budget, out, list.items->items);
    append(out, "]");
  }
  void operator()(const Tuple& tuple) const {
    append(out, "(");
    append_items(budget, out, tuple.items->items);
    append(out, tuple.items->items.size() == 1 ? ",)" : ")");
  }
  void operator()(const DictPtr& dict) const { append_entries(budget, out, *dict); }
  void operator()(const Range& range) const {
    append(out, range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                                : fmt::format("range({}, {}, {})", range.start, range.stop, range.step));
  }
  void operator()(const DictView& view) const {
    append(out, type_name(view));
    append(out, "([");
    append_items(budget, out, items_of(budget, view));
    append(out, "])");
  }
  void operator()(const IteratorPtr& iterator) const { append(out, fmt::format("<{} object>", iterator->type)); }
  // Namespaces may hold each other, so only the outermost shows its contents.
  void operator()(const Namespace*) const { append(out, "<Namespace {...}>"); }
  void operator()(const ThingPtr& thing) const { append(out, thing->shown()); }
};

}  // namespace

std::string repr(double number) {
  std::string text = fmt::format("{}", number);
  if (std::isfinite(number) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return std::isnan(number) ? "nan" : text;
}

void append_repr(Text& out, const Text& text) {
  const bool has_single = text.bytes.find('\'') != std::string::npos;
  const char quote = has_single && text.bytes.find('"') == std::string::npos ? '"' : '\'';
  append(out, std::string_view(&quote, 1));
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    append(out, quoted(here.code, quote), is_input(text, i));
    i = here.next;
  }
  append(out, std::string_view(&quote, 1));
}

void append_repr(Budget& budget, Text& out, const Object& object) {
  budget.step();
  budget.charge(16);
  std::visit(Shown{budget, out}, object.storage());
}

std::string repr(Budget& budget, const Object& object) {
  Text text;
  append_repr(budget, text, object);
  return text.bytes;
}

Text to_text(Budget& budget, const Object& object) {
  if (const Text* const text = object.text()) {
    budget.charge(text->size());
    Text plain = *text;
    plain.is_markup = false;
    return plain;
  }
  Text out;
  if (const auto* space = object.get_if<Namespace*>()) {
    append(out, "<Namespace {");
    for (const auto& [name, value] : (*space)->entries) {
      if (&name != &(*space)->entries.front().first) append(out, ", ");
      append_repr(out, name);
      append(out, ": ");
      append_repr(budget, out, value);
    }
    append(out, "}>");
  } else if (!object.is_undefined()) {
    append_repr(budget, out, object);
  }
  return out;
}

}  // namespace poise::jinja
