// Writes objects as Python's str(), repr() and json.dumps() do.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "jinja/filters.hpp"
#include "jinja/object.hpp"

namespace poise::jinja {
namespace {

// Returns a character of a quoted text, escaped as in Python.
std::string escape_character(char32_t code, char quote) {
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
    append_utf8(text, code);
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
  void operator()(double value) const { append(out, format_repr(value)); }
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
  void operator()(const RangeObject& range) const {
    append(out, range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                                : fmt::format("range({}, {}, {})", range.start, range.stop, range.step));
  }
  void operator()(const DictView& view) const {
    append(out, get_type_name(view));
    append(out, "([");
    append_items(budget, out, read_items(budget, view));
    append(out, "])");
  }
  void operator()(const IteratorPtr& iterator) const { append(out, fmt::format("<{} object>", iterator->type)); }
  // Namespaces may hold each other, so only to_text() of a namespace itself shows its entries.
  void operator()(const Namespace*) const { append(out, "<Namespace {...}>"); }
  void operator()(const ThingPtr& thing) const { append(out, thing->describe()); }
};

}  // namespace

std::string format_repr(double number) {
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
    append(out, escape_character(here.code, quote), is_input(text, i));
    i = here.next;
  }
  append(out, std::string_view(&quote, 1));
}

void append_repr(Budget& budget, Text& out, const Object& object) {
  budget.step();
  budget.charge(16);
  std::visit(Shown{budget, out}, object.storage());
}

std::string format_repr(Budget& budget, const Object& object) {
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

namespace {

std::string escape_json(char32_t code, bool ascii) {
  switch (code) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\f': return "\\f";
    case '\b': return "\\b";
    default: break;
  }
  const auto number = static_cast<std::uint32_t>(code);
  if (number < 0x20 || (ascii && number > 0x7E && number <= 0xFFFF)) return fmt::format("\\u{:04x}", number);
  if (ascii && number > 0xFFFF) {
    const std::uint32_t rest = number - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
  }
  std::string text;
  append_utf8(text, code);
  return text;
}

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {
    const bool has_lines = style.indent.has_value();
    between_ = style.separators ? style.separators->first : Text{has_lines ? "," : ", "};
    after_key_ = style.separators ? style.separators->second : Text{": "};
  }

  void write(const Object& value) {
    budget_.step();
    budget_.charge(16);
    if (value.is_none()) return append(out, "null");
    if (const auto* truth = value.get_if<bool>()) return append(out, *truth ? "true" : "false");
    if (const auto* whole = value.get_if<std::int64_t>()) return append(out, std::to_string(*whole));
    if (const auto* real = value.get_if<double>()) return append(out, format_number(*real));
    if (const Text* const text = value.text()) return write_text(*text);
    if (const auto* items = value.sequence()) return write_items(*items);
    if (const auto* dict = value.get_if<DictPtr>()) return write_entries(**dict);
    fail(fmt::format("Object of type {} is not JSON serializable", get_type_name(value)));
  }

  Text out;

 private:
  static std::string format_number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return format_repr(value);
  }

  void write_text(const Text& text) {
    budget_.charge(2 * text.size());
    append(out, "\"");
    for (std::size_t i = 0; i < text.size();) {
      const Decoded here = decode(text.bytes, i);
      append(out, escape_json(here.code, style_.ascii), is_input(text, i));
      i = here.next;
    }
    append(out, "\"");
  }

  void append_new_line() {
    if (!style_.indent) return;
    budget_.charge(level_ + 1, 2 * style_.indent->size() + 1);
    append(out, "\n");
    for (std::size_t i = 0; i < level_; ++i) append(out, *style_.indent);
  }

  void write_items(const std::vector<Object>& items) {
    if (items.empty()) return append(out, "[]");
    append(out, "[");
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) append(out, between_);
      append_new_line();
      write(items[i]);
    }
    --level_;
    append_new_line();
    append(out, "]");
  }

  static Text convert_key(const Object& key) {
    if (const Text* const text = key.text()) return *text;
    if (key.is_none()) return Text{"null"};
    if (const auto* truth = key.get_if<bool>()) return Text{*truth ? "true" : "false"};
    if (const auto* whole = key.get_if<std::int64_t>()) return Text{std::to_string(*whole)};
    if (const auto* real = key.get_if<double>()) return Text{format_number(*real)};
    fail(fmt::format("keys must be str, int, float, bool or None, not {}", get_type_name(key)));
  }

  void write_entries(const Dict& dict) {
    if (dict.entries().empty()) return append(out, "{}");
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::ranges::stable_sort(
          entries, [&](const Dict::Entry* a, const Dict::Entry* b) { return is_less(budget_, a->first, b->first); });
    }
    append(out, "{");
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) append(out, between_);
      append_new_line();
      write_text(convert_key(entries[i]->first));
      append(out, after_key_);
      write(entries[i]->second);
    }
    --level_;
    append_new_line();
    append(out, "}");
  }

  Budget& budget_;
  const JsonStyle& style_;
  Text between_;
  Text after_key_;
  std::size_t level_ = 0;
};

}  // namespace

Text format_json(Budget& budget, const Object& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  writer.write(value);
  budget.charge(writer.out.size());
  return std::move(writer.out);
}

}  // namespace poise::jinja
