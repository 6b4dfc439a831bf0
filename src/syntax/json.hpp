// JSON texts with a budget of their own, and those that are too large to be kept as one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <poise/value.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/function_ref.hpp"
#include "bytes/huge_pages.hpp"
#include "syntax/value_budget.hpp"

namespace poise {

// As poise::parse_json(), which takes the usual budget.
Value parse_json(std::string_view text, const std::string& name, ValueBudget budget);

// Appends a text as to_json() quotes it: U+FFFD takes the place of each byte that is no UTF-8.
void append_quoted(std::string& out, std::string_view text);

// A text in memory of its own, with the room that the parser wants after it.
class JsonText {
 public:
  explicit JsonText(std::string_view text);
  // Part of a range. Throws io. Requires: the range has it.
  JsonText(const ByteRange& range, std::uint64_t offset, std::size_t length);

  std::string_view text() const { return {bytes_.get(), size_}; }

  // Gives the memory of what is before a place back, a good deal at a time. For a walk whose caller has kept nothing of
  // that.
  void release_before(std::size_t place);

 private:
  struct Free {
    std::size_t bytes = 0;
    void operator()(char* memory) const { HugePages<char>().deallocate(memory, bytes); }
  };
  static std::unique_ptr<char[], Free> room_for(std::size_t size);

  std::unique_ptr<char[], Free> bytes_;
  std::size_t size_;
  std::size_t released_ = 0;
};

class JsonParser;  // json.cpp's own

// A value that is met while a text is walked. It is asked once, with the kind it has to have; one that is not asked is
// passed over. All functions throw invalid_file, with the place, where the text breaks a rule of JSON.
class JsonValue {
 public:
  using TakeMember = FunctionRef<void(std::string_view key, JsonValue& value)>;
  using TakeItem = FunctionRef<void(JsonValue& value)>;

  // Of the value; for a member of its key. In the file.
  std::uint64_t position() const { return position_; }

  // Nothing, or false, where the value is of another kind. Text is valid until the text has been walked.
  std::optional<std::string_view> text();
  std::optional<std::uint64_t> unsigned_integer();
  bool items(TakeItem take);
  // Refuses a key that comes twice.
  bool members(TakeMember take);
  // The same, but a key that comes twice is for `take` to find.
  bool members_unchecked(TakeMember take);
  // The whole of it.
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

// Walks the members of the object that the text is to be. A key that comes twice is for `take` to find: it may have a
// table of them anyway. All trees that are asked for share one budget, as if the text were one. `name` is the file,
// `offset` the place of the text in it. Throws invalid_file, and what `take` throws.
void walk_json_object(const JsonText& text, const std::string& name, std::uint64_t offset, JsonValue::TakeMember take);

// What parse_json() and walk_json_object() say of a key that comes twice.
[[noreturn]] void fail_repeated_key(std::string_view key, const std::string& name, std::uint64_t position);

}  // namespace poise
