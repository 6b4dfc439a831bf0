// A JsonWriter writes JSON text in pieces. to_json() uses it, and so does output that is too large for a Value.
//
//   JsonWriter out(2);
//   out.begin_object();
//   out.write_member("name", name);
//   out.write_key("shape");
//   out.begin_array();
//   for (const std::uint64_t dimension : shape) out.write_value(dimension);
//   out.end_array();
//   out.end_object();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

class JsonWriter {
 public:
  // Chooses how to write numbers that JSON lacks: as null, as the texts "NaN", "Infinity" and "-Infinity", or as these
  // words without quotes, as Python's json does.
  enum class NotFinite : std::uint8_t { null, quoted, named };

  // `indent` is the number of spaces for each level; if it is below 0, all text is in one line.
  explicit JsonWriter(int indent = -1, NotFinite not_finite = NotFinite::null)
      : indent_(indent), not_finite_(not_finite) {}

  void begin_object() {
    begin_item();
    open_bracket('{');
  }
  void end_object() { close_bracket('}'); }
  void begin_array() {
    begin_item();
    open_bracket('[');
  }
  void end_array() { close_bracket(']'); }

  // Writes the key of the next value. Requires: the innermost container is an object.
  void write_key(std::string_view name);

  // Writes Value::Bytes as a string of hexadecimal digits. In texts, U+FFFD replaces each byte of invalid UTF-8.
  void write_value(const Value& value);
  void write_value(std::string_view text);
  void write_value(const std::string& text) { write_value(std::string_view(text)); }
  void write_value(const char* text) { write_value(std::string_view(text)); }

  template <typename Of>
  void write_member(std::string_view name, const Of& of) {
    write_key(name);
    write_value(of);
  }

  // Returns the size of the text that release() would return.
  std::size_t size() const { return text_.size(); }
  std::string release();

 private:
  friend struct JsonItem;  // defined in json_writer.cpp
  void open_bracket(char bracket);
  void close_bracket(char bracket);
  // Writes the separator before an item.
  void begin_item();
  void begin_line();

  int indent_;
  NotFinite not_finite_;
  std::string text_;
  std::vector<bool> has_items_;  // one for each open container, the outermost first
  bool is_after_key_ = false;
};

// Returns a value as JSON text. NaN and infinities, which JSON lacks, become NaN, Infinity and -Infinity without
// quotes, as in Python's json.
std::string format_python_json(const Value& value);

}  // namespace poise
