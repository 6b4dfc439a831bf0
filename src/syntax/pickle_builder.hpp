// Makes the objects of a pickle.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/pickle.hpp"
#include "syntax/pickle_program.hpp"

namespace poise::pickle {

inline constexpr Id kTrue = 1;
inline constexpr Id kFalse = 2;
inline constexpr Id kEmptyTuple = 3;

// Adds objects to a Pickle. Charges the program with the memory that they take. Throws what Program throws.
class Builder {
 public:
  // Requires: both outlive this; `result` is empty.
  Builder(Program& program, std::uint64_t begin, Pickle& result);

  Id add_integer(std::int64_t value) { return make(Kind::integer, static_cast<std::uint64_t>(value)); }
  Id add_integer(
      std::span<const std::byte> bytes);  // little-endian, of any length; the bytes that the program read last
  Id add_real(double value);
  // These parse a line.
  Id add_line_integer(std::string_view text, std::string_view what);
  Id add_line_real(std::string_view text);

  // Adds a text of the pickle itself: the `length` bytes that follow.
  Id read_text(Kind kind, std::uint64_t length);
  // Adds a text of Python 2, which may be bytes.
  Id read_string(std::uint64_t length);
  Id add_text(Kind kind, std::string text);
  // Records the first text for Pickle::lone_surrogate().
  Id note_surrogate(Id id);
  // Adds a text in quotes, as Python 2 prints it.
  Id add_quoted_line(std::string_view line);
  // Adds a line in Latin-1, with \u1234 for characters that it does not have.
  Id add_unicode_line(std::string_view line);

  Id add_list(Kind kind, std::vector<Id> items);
  Id add_tuple(const std::vector<Id>& items);

  Id add_global(std::string_view module, std::string_view name);
  // Adds a global by its code in the extension registry of the reading program (copyreg), which Poise does not have: it
  // gets the name copyreg.extension followed by the code.
  Id add_extension(std::uint32_t code);
  Id add_persistent(Id key) { return make(Kind::persistent, key); }
  void set_keywords(Id call, std::vector<Id> pairs);
  Id add_call(Call::How how, Id function, Id arguments, std::string_view what);

  void set_state(Id target, Id state);
  void append(Id target, const std::vector<Id>& items, std::string_view what);
  void add(Id target, const std::vector<Id>& items);
  void set(Id target, const std::vector<Id>& pairs, std::string_view what);

 private:
  using Node = Pickle::Node;

  Id make(Kind kind, std::uint64_t first, std::uint64_t second = 0);
  Id add_checked_text(std::string text);
  void extend(Id target, Kind kind, const std::vector<Id>& items, std::string_view what);
  void set_in_list(std::vector<Id>& list, Id key, Id value) const;
  bool is_empty_state(Id state) const;
  [[noreturn]] void refuse_target(Id target, std::string_view what, std::string_view expected) const;

  Program& program_;
  Pickle& result_;
};

}  // namespace poise::pickle
