// Parses JSON texts within a budget of memory, and walks texts that are too large for one Value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/function_ref.hpp"
#include "bytes/platform.hpp"
#include "syntax/value_budget.hpp"

namespace poise {

// Parses a number of a JSON text (RFC 8259, section 6). An integer that 64 bits hold, with or without a sign, stays an
// integer; other numbers become double, or 0 if they are too small. Returns std::nullopt, with the problem, for a token
// that is not a number and for a number that is too large.
std::optional<Value> parse_json_number(std::string_view token, std::string_view& problem);

// Holds a copy of a text, with the padding that the parser needs.
class JsonText {
 public:
  explicit JsonText(std::string_view text);
  // Reads the text from a source. Throws io. Requires: the range is inside the source.
  JsonText(const Source& source, std::uint64_t offset, std::size_t length);

  std::string_view text() const { return {bytes_.get(), size_}; }

  // Frees the memory before a position, in large steps. Requires: nobody uses a view of this memory any more.
  void release_before(std::size_t place);

 private:
  struct Free {
    std::size_t bytes = 0;
    void operator()(char* memory) const { HugePages<char>().deallocate(memory, bytes); }
  };
  static std::unique_ptr<char[], Free> allocate_padded(std::size_t size);

  std::unique_ptr<char[], Free> bytes_;
  std::size_t size_;
  std::size_t released_ = 0;
};

// Parses as poise::parse_json() does, within `budget`.
Value parse_json(std::string_view text, const std::string& name, ValueBudget budget);

// Collects the first few numbers of a text that a Value cannot hold, as the text spells them, each once.
struct UnheldNumbers {
  std::vector<std::string> non_finite;     // NaN, Infinity and -Infinity, as Python writes them: null takes their place
  std::vector<std::string> wide_integers;  // integers of more than 64 bits: a rounded number takes their place
};

// Parses as poise::parse_json() does, but accepts numbers that are not finite, and lists the numbers that a Value
// cannot hold.
Value parse_json(std::string_view text, const std::string& name, UnheldNumbers& numbers);

// Parses as poise::parse_json() does, but refuses integers of more than 64 bits, so that no integer is rounded.
Value parse_exact_json(std::string_view text, const std::string& name);

// Shortens an integer of any number of digits for a message.
std::string shorten_integer(std::string_view digits);

// Appends a text in quotes, with escapes as in to_json(). U+FFFD replaces each byte of invalid UTF-8.
void append_quoted(std::string& out, std::string_view text);

class JsonParser;  // defined in json.cpp

// Represents a value that a walk through a text has reached. The caller reads it at most once, but may first try other
// kinds; a value that is not read is skipped. All functions throw invalid_file, with the place, for invalid JSON.
class JsonValue {
 public:
  using VisitMember = FunctionRef<void(std::string_view key, JsonValue& value)>;
  using VisitItem = FunctionRef<void(JsonValue& value)>;

  // Returns the offset in the file of the value; for a member of an object, that of its key.
  std::uint64_t position() const { return position_; }

  // Each function returns std::nullopt, or false, for a value of another kind. A text is valid until the end of the
  // walk.
  std::optional<std::string_view> read_text();
  std::optional<std::uint64_t> read_unsigned();
  bool visit_items(VisitItem visit);
  // Calls `visit` for the members of the object. Rejects repeated keys.
  bool visit_members(VisitMember visit);
  // Calls `visit` for the members of the object, including those with repeated keys.
  bool visit_members_unchecked(VisitMember visit);
  // Returns the whole value.
  Value read_tree();

 private:
  friend class JsonParser;
  bool walk_members(bool unique, VisitMember visit);
  JsonValue(JsonParser& parser, void* source, std::string_view token, std::size_t depth, std::uint64_t position)
      : parser_(parser), source_(source), token_(token), depth_(depth), position_(position) {}

  JsonParser& parser_;
  void* source_;  // simdjson's value; null once it has been read
  std::string_view token_;
  std::size_t depth_;
  std::uint64_t position_;
};

// Calls `visit` for the members of a text, which must be an object. Does not reject repeated keys: `visit` may have a
// table of keys. All trees that `visit` reads share one budget. `name` is the file, `offset` the place of the text in
// it. Throws invalid_file, and what `visit` throws.
void walk_json_object(const JsonText& text, const std::string& name, std::uint64_t offset,
                      JsonValue::VisitMember visit);

// Throws the error of parse_json() for a repeated key.
[[noreturn]] void fail_repeated_key(std::string_view key, const std::string& name, std::uint64_t position);

}  // namespace poise
