// Writes JSON as Python's json.dumps().
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "jinja/filters.hpp"

namespace poise::jinja {
namespace {

std::string escape_of(char32_t code, bool ascii) {
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
  append_code(text, code);
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
    if (const auto* real = value.get_if<double>()) return append(out, number(*real));
    if (const Text* const text = value.text()) return write_text(*text);
    if (const auto* items = value.sequence()) return write_items(*items);
    if (const auto* dict = value.get_if<DictPtr>()) return write_entries(**dict);
    fail(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

  Text out;

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return repr(value);
  }

  void write_text(const Text& text) {
    budget_.charge(2 * text.size());
    append(out, "\"");
    for (std::size_t i = 0; i < text.size();) {
      const Decoded here = decode(text.bytes, i);
      append(out, escape_of(here.code, style_.ascii), is_input(text, i));
      i = here.next;
    }
    append(out, "\"");
  }

  void new_line() {
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
      new_line();
      write(items[i]);
    }
    --level_;
    new_line();
    append(out, "]");
  }

  static Text key_text(const Object& key) {
    if (const Text* const text = key.text()) return *text;
    if (key.is_none()) return Text{"null"};
    if (const auto* truth = key.get_if<bool>()) return Text{*truth ? "true" : "false"};
    if (const auto* whole = key.get_if<std::int64_t>()) return Text{std::to_string(*whole)};
    if (const auto* real = key.get_if<double>()) return Text{number(*real)};
    fail(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
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
      new_line();
      write_text(key_text(entries[i]->first));
      append(out, after_key_);
      write(entries[i]->second);
    }
    --level_;
    new_line();
    append(out, "}");
  }

  Budget& budget_;
  const JsonStyle& style_;
  Text between_;
  Text after_key_;
  std::size_t level_ = 0;
};

}  // namespace

Text json_text(Budget& budget, const Object& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  writer.write(value);
  budget.charge(writer.out.size());
  return std::move(writer.out);
}

}  // namespace poise::jinja
