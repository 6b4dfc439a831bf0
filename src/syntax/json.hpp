// JSON texts with their own budget, and those that are too large for one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <poise/value.hpp>

#include "bytes/function_ref.hpp"
#include "syntax/json_text.hpp"
#include "syntax/value_budget.hpp"

namespace poise {

// As poise::parse_json(), which uses the default budget.
Value parse_json(std::string_view text, const std::string& name, ValueBudget budget);

// Appends a text as to_json() quotes it: U+FFFD replaces each byte of invalid UTF-8.
void append_quoted(std::string& out, std::string_view text);

class JsonParser;  // json.cpp's own

// A value during a walk through a text. The caller asks once, for the kind that it must have; otherwise it is skipped.
// All functions throw invalid_file, with the place, for invalid JSON.
class JsonValue {
 public:
  using TakeMember = FunctionRef<void(std::string_view key, JsonValue& value)>;
  using TakeItem = FunctionRef<void(JsonValue& value)>;

  // Of the value, or of a member's key, in the file.
  std::uint64_t position() const { return position_; }

  // Nothing, or false, for a value of another kind. Text is valid until the end of the walk.
  std::optional<std::string_view> text();
  std::optional<std::uint64_t> unsigned_integer();
  bool items(TakeItem take);
  // Rejects repeated keys.
  bool members(TakeMember take);
  // The same, but `take` detects repeated keys.
  bool members_unchecked(TakeMember take);
  // The whole value.
  Value tree();

 private:
  friend class JsonParser;
  bool walk_members(bool unique, TakeMember take);
  JsonValue(JsonParser& parser, void* source, std::string_view token, std::size_t depth, std::uint64_t position)
      : parser_(parser), source_(source), token_(token), depth_(depth), position_(position) {}

  JsonParser& parser_;
  void* source_;  // simdjson's value; null once it has been asked
  std::string_view token_;
  std::size_t depth_;
  std::uint64_t position_;
};

// Walks the members of the object that the text must be. `take` detects repeated keys: it may have a table of them. All
// trees share one budget, as if they were one value. `name` is the file, `offset` the place of the text in it. Throws
// invalid_file, and what `take` throws.
void walk_json_object(const JsonText& text, const std::string& name, std::uint64_t offset, JsonValue::TakeMember take);

// The error of parse_json() and walk_json_object() for a repeated key.
[[noreturn]] void fail_repeated_key(std::string_view key, const std::string& name, std::uint64_t position);

}  // namespace poise
