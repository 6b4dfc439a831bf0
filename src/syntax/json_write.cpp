// Writes values as JSON text.
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

std::string hex(const Value::Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// The shortest digits that are read as the same number; always with a point or an exponent, which tell it from an
// integer.
std::string number_text(double number) {
  std::array<char, 32> buffer;
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e15);
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(buffer.data(), end);
  return plain && text.find('.') == std::string::npos ? text + ".0" : text;
}

// How many bytes of a text need no escape.
std::size_t plain_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const auto byte = static_cast<unsigned char>(text[length]);
    if (byte < 0x20 || byte == '"' || byte == '\\') break;
    const std::size_t character = byte < 0x80 ? 1 : character_length(text.substr(length));
    if (character == 0) break;
    length += character;
  }
  return length;
}

// Appends what takes the place of a byte that a JSON string cannot hold.
void append_escaped(std::string& out, char front) {
  constexpr std::string_view kNamed = "\"\\\b\f\n\r\t";
  constexpr std::string_view kNames = "\"\\bfnrt";
  if (const auto named = kNamed.find(front); named != std::string_view::npos) {
    out += '\\';
    out += kNames[named];
  } else if (static_cast<unsigned char>(front) < 0x20) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(front));
  } else {
    out += kReplacementCharacter;
  }
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  std::string take() { return std::move(text_); }
  void write(const Value& value) { std::visit(*this, value.storage()); }

  void operator()(std::nullptr_t) { text_ += "null"; }
  void operator()(bool value) { text_ += value ? "true" : "false"; }
  void operator()(std::int64_t number) { fmt::format_to(std::back_inserter(text_), "{}", number); }
  void operator()(std::uint64_t number) { fmt::format_to(std::back_inserter(text_), "{}", number); }
  void operator()(double number) { text_ += std::isfinite(number) ? number_text(number) : "null"; }
  void operator()(const std::string& text) { append_quoted(text_, text); }
  void operator()(const Value::Bytes& bytes) { append_quoted(text_, hex(bytes)); }
  void operator()(const Value::Array& array) {
    list('[', array, ']', [&](const Value& item) { write(item); });
  }
  void operator()(const Value::Pairs& pairs) {
    list('[', pairs, ']', [&](const auto& pair) {
      list('[', std::array{&pair.first, &pair.second}, ']', [&](const Value* item) { write(*item); });
    });
  }
  void operator()(const Attributes& map) {
    list('{', map, '}', [&](const Attributes::Entry& entry) {
      append_quoted(text_, entry.first);
      text_ += indent_ < 0 ? ":" : ": ";
      write(entry.second);
    });
  }

 private:
  void new_line() {
    if (indent_ < 0) return;
    text_ += '\n';
    text_.append(depth_ * static_cast<std::size_t>(indent_), ' ');
  }

  template <typename Items, typename Write>
  void list(char open, const Items& items, char close, Write&& write_item) {
    text_ += open;
    ++depth_;
    bool first = true;
    for (const auto& item : items) {
      if (!first) text_ += ',';
      first = false;
      new_line();
      write_item(item);
    }
    --depth_;
    if (!first) new_line();
    text_ += close;
  }

  int indent_;
  std::size_t depth_ = 0;
  std::string text_;
};

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = plain_length(text);
    out += text.substr(0, length);
    text.remove_prefix(length);
    if (text.empty()) break;
    append_escaped(out, text.front());
    text.remove_prefix(1);
  }
  out += '"';
}

std::string to_json(const Value& value, int indent) {
  Writer writer(indent);
  writer.write(value);
  return writer.take();
}

}  // namespace poise
