#include "syntax/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

std::string format_hex(const Value::Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// Returns the shortest digits that read as the same number, with a point or an exponent, which integers lack.
std::string format_number(double number) {
  std::array<char, 32> buffer;
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e15);
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(buffer.data(), end);
  return plain && text.find('.') == std::string::npos ? text + ".0" : text;
}

// Returns the length of the prefix that needs no escape.
std::size_t measure_plain_prefix(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const auto byte = static_cast<unsigned char>(text[length]);
    if (byte < 0x20 || byte == '"' || byte == '\\') break;
    const std::size_t character = byte < 0x80 ? 1 : measure_character(text.substr(length));
    if (character == 0) break;
    length += character;
  }
  return length;
}

// Appends the escape of a byte that a JSON string cannot hold, or U+FFFD for a byte of invalid UTF-8.
void append_escaped(std::string& out, char front) {
  constexpr std::string_view kNamed = "\"\\\b\f\n\r\t";
  constexpr std::string_view kNames = "\"\\bfnrt";
  if (const auto named = kNamed.find(front); named != std::string_view::npos) {
    out += '\\';
    out += kNames[named];
  } else if (static_cast<unsigned char>(front) < 0x20) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(front));
  } else {
    out += kReplacementCharacter;
  }
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = measure_plain_prefix(text);
    out += text.substr(0, length);
    text.remove_prefix(length);
    if (text.empty()) break;
    append_escaped(out, text.front());
    text.remove_prefix(1);
  }
  out += '"';
}

// Writes a value without the separator before it.
struct JsonItem {
  JsonWriter& out;

  void operator()(std::nullptr_t) const { out.text_ += "null"; }
  void operator()(bool value) const { out.text_ += value ? "true" : "false"; }
  void operator()(std::int64_t number) const { out.text_ += fmt::format_int(number).c_str(); }
  void operator()(std::uint64_t number) const { out.text_ += fmt::format_int(number).c_str(); }
  void operator()(double number) const {
    if (std::isfinite(number)) {
      out.text_ += format_number(number);
    } else if (out.not_finite_ == JsonWriter::NotFinite::null) {
      out.text_ += "null";
    } else {
      const std::string_view name = std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
      const std::string_view quote = out.not_finite_ == JsonWriter::NotFinite::quoted ? "\"" : "";
      out.text_ += fmt::format("{0}{1}{0}", quote, name);
    }
  }
  void operator()(const std::string& text) const { append_quoted(out.text_, text); }
  void operator()(const Value::Bytes& bytes) const { append_quoted(out.text_, format_hex(bytes)); }
  void operator()(const Value::Array& array) const {
    out.open_bracket('[');
    for (const Value& item : array) out.write_value(item);
    out.close_bracket(']');
  }
  void operator()(const Value::Pairs& pairs) const {
    out.open_bracket('[');
    for (const auto& [first, second] : pairs) {
      out.begin_item();
      out.open_bracket('[');
      out.write_value(first);
      out.write_value(second);
      out.close_bracket(']');
    }
    out.close_bracket(']');
  }
  void operator()(const Attributes& map) const {
    out.open_bracket('{');
    for (const auto& [key, value] : map) out.write_member(key, value);
    out.close_bracket('}');
  }
};

void JsonWriter::write_value(const Value& value) {
  begin_item();
  std::visit(JsonItem{*this}, value.storage());
}

void JsonWriter::write_value(std::string_view text) {
  begin_item();
  append_quoted(text_, text);
}

void JsonWriter::write_key(std::string_view name) {
  begin_item();
  append_quoted(text_, name);
  text_ += indent_ < 0 ? ":" : ": ";
  is_after_key_ = true;
}

std::string JsonWriter::release() { return std::exchange(text_, {}); }

void JsonWriter::begin_item() {
  if (std::exchange(is_after_key_, false) || has_items_.empty()) return;
  if (has_items_.back()) text_ += ',';
  has_items_.back() = true;
  begin_line();
}

void JsonWriter::open_bracket(char bracket) {
  text_ += bracket;
  has_items_.push_back(false);
}

void JsonWriter::close_bracket(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) begin_line();
  text_ += bracket;
}

void JsonWriter::begin_line() {
  if (indent_ < 0) return;
  text_ += '\n';
  text_.append(has_items_.size() * static_cast<std::size_t>(indent_), ' ');
}

std::string to_json(const Value& value, int indent) {
  JsonWriter writer(indent);
  writer.write_value(value);
  return writer.release();
}

std::string format_python_json(const Value& value) {
  JsonWriter out(-1, JsonWriter::NotFinite::named);
  out.write_value(value);
  return out.release();
}

}  // namespace poise
