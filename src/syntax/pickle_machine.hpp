// Defines the machine that runs a pickle: its program, its stack with marks and memo, and the objects that it makes.
//
// It throws invalid_file at a step where Python stops, too: Python runs no step after that one. It throws unsupported
// at a step where one of Python's readers (the C code or Lib/pickle.py) may go on, to steps that Poise has not checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bytes/little_endian.hpp"
#include "syntax/pickle.hpp"
#include "syntax/pickle_steps.hpp"

namespace poise::pickle {

class Program {
 public:
  // Ignores bytes beyond 2^31, because places in a pickle have 32 bits. Requires: `name` outlives this.
  Program(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t position() const { return position_; }
  // Returns the place in bytes() where the current step begins.
  std::size_t step_offset() const { return step_at_; }

  PickleStep read_step();

  // Begins a frame of the `length` bytes that follow the current step (protocol 4). Throws unsupported for a frame
  // inside another one; reads throw it for a step that goes beyond its frame. Python's readers treat both cases
  // differently: some drop bytes, some go on, some fail.
  void begin_frame(std::uint64_t length);

  // Returns the `length` bytes that follow a step. `what` names them in errors.
  std::span<const std::byte> read_bytes(std::uint64_t length, std::string_view what);
  template <typename T>
  T read_number(std::string_view what) {
    return load_le<T>(read_bytes(sizeof(T), what).data());
  }
  // Returns the bytes up to a line feed, and skips the line feed.
  std::string_view read_line(std::string_view what);
  bool has_lines(std::size_t count) const;
  // Reads a length, a signed number of 32 bits. Throws invalid_file if it is negative.
  std::uint64_t read_length(std::string_view what);
  // Returns true if a step has asked for bytes beyond the end.
  bool has_run_out() const { return has_run_out_; }

  // Takes bytes from the budget for the memory of objects. Throws unsupported if the budget has fewer.
  void charge(std::uint64_t bytes);
  // Throws invalid_file at the current step, where Python stops.
  [[noreturn]] void fail(const std::string& problem) const;
  // Throws unsupported at the current step, where Python may go on.
  [[noreturn]] void refuse(const std::string& problem) const;

 private:
  void require_in_frame(std::uint64_t end) const;

  const std::string& name_;
  std::uint64_t begin_;
  std::span<const std::byte> bytes_;
  std::uint64_t budget_;
  std::size_t position_ = 0;
  std::size_t step_at_ = 0;
  std::uint64_t frame_end_ = 0;  // the end of the last frame
  bool has_run_out_ = false;
};

inline std::string_view view_as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Holds the objects that the steps work on, the marks and the memo. Throws invalid_file when a step uses an object or a
// mark that does not exist.
class Stack {
 public:
  // Requires: the program outlives this.
  explicit Stack(Program& program) : program_(program) {}

  void push(Id id);
  Id top() const;
  Id pop();
  // Removes the top object, or the last mark if no object is above it.
  void drop();
  std::vector<Id> pop_many(std::size_t count);

  void push_mark();
  // Removes and returns the objects above the last mark, and removes the mark.
  std::vector<Id> pop_marked(std::string_view what);
  void drop_marked(std::string_view what);

  // Stores the top object in the memo.
  void store_in_memo(std::uint64_t key);
  void push_from_memo(std::uint64_t key);
  // Returns how many keys the memo has: the key of the next MEMOIZE.
  std::uint64_t count_memo_keys() const { return memo_.size() + far_memo_.size(); }

 private:
  std::size_t find_floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::size_t find_top_mark(std::string_view what) const;
  void cut_at_mark(std::size_t size);

  Program& program_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // the size of the stack at each mark
  // Keys that follow each other from 0 on are in memo_, larger ones in far_memo_.
  std::vector<Id> memo_;
  std::unordered_map<std::uint64_t, Id> far_memo_;
};

inline constexpr Id kTrue = 1;
inline constexpr Id kFalse = 2;
inline constexpr Id kEmptyTuple = 3;

// Adds objects to a Pickle. Charges their memory to the program. Throws by Program::charge(), fail() and refuse().
class Builder {
 public:
  // Requires: `program` and `result` outlive this; `result` is empty.
  Builder(Program& program, std::uint64_t begin, Pickle& result);

  Id add_integer(std::int64_t value) { return add_node(Kind::integer, static_cast<std::uint64_t>(value)); }
  // `bytes` are those that the program has read last: little-endian, of any length.
  Id add_integer(std::span<const std::byte> bytes);
  Id add_real(double value);
  // These functions parse a line of the pickle and add the object.
  Id add_line_integer(std::string_view text, std::string_view what);
  Id add_line_real(std::string_view text);

  // Adds the next `length` bytes of the pickle as a text or bytes.
  Id read_text(Kind kind, std::uint64_t length);
  // Adds a str of Python 2: a text if it is UTF-8, otherwise bytes.
  Id read_string(std::uint64_t length);
  Id add_text(Kind kind, std::string text);
  // Records the first text with a lone surrogate, for Pickle::lone_surrogate(). Returns `id`.
  Id record_surrogate(Id id);
  // Adds a text in quotes, as Python 2 prints it.
  Id add_quoted_line(std::string_view line);
  // Adds a line in Latin-1, with \u1234 for characters outside of Latin-1.
  Id add_unicode_line(std::string_view line);

  Id add_list(Kind kind, std::vector<Id> items);
  Id add_tuple(const std::vector<Id>& items);

  Id add_global(std::string_view module, std::string_view name);
  // Adds a global by its code in copyreg, the extension registry of the program that loads the pickle. Poise does not
  // have this registry: the global gets the module "copyreg" and a name such as "extension 5".
  Id add_extension(std::uint32_t code);
  Id add_persistent(Id key) { return add_node(Kind::persistent, key); }
  void set_keywords(Id call, std::vector<Id> pairs);
  Id add_call(Call::How how, Id function, Id arguments, std::string_view what);

  void set_state(Id target, Id state);
  void append_to_list(Id target, const std::vector<Id>& items, std::string_view what);
  void add_to_set(Id target, const std::vector<Id>& items);
  void set_pairs(Id target, const std::vector<Id>& pairs, std::string_view what);

 private:
  using Node = Pickle::Node;

  Id add_node(Kind kind, std::uint64_t first, std::uint64_t second = 0);
  Id add_checked_text(std::string text);
  void append_items(Id target, Kind kind, const std::vector<Id>& items, std::string_view what);
  void set_list_item(std::vector<Id>& list, Id key, Id value) const;
  bool is_empty_state(Id state) const;
  [[noreturn]] void refuse_target(Id target, std::string_view what, std::string_view expected) const;

  Program& program_;
  Pickle& result_;
};

}  // namespace poise::pickle
