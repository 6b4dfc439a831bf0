// Reads Python's pickles without Python (Lib/pickletools.py of CPython describes the format).
//
// A pickle is a program for a small stack machine. Most of its steps build plain data: numbers, texts, lists, dicts.
// Other steps name a function or a class of any module (a "global"), or call it: this is how pickles run code when
// Python loads them. Here nothing is imported and nothing is called: a global stays a name, and a call is an object
// that records the function and its arguments. The caller decides which globals and calls it understands.
//
// This code reads protocols 0 to 5. Objects are numbered in the order in which they are made. Several objects may hold
// the same object, and an object may hold itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>

namespace poise::pickle {

enum class Kind : std::uint8_t {
  none,
  boolean,
  integer,
  wide_integer,  // more than 64 bits: text() is two's complement, lowest byte first; empty for a line of over 64 digits
  real,
  text,
  bytes,
  tuple,
  list,
  dict,
  set,
  global,      // a function or a class, by its name
  call,        // the object that a call would make, and the changes to it
  persistent,  // an object that is stored elsewhere; persistent() returns the object that names it
};

using Id = std::uint32_t;
inline constexpr Id kNone = 0;  // the id of Python's None

struct Global {
  std::string_view module;
  std::string_view name;
};

// Describes the object that a call would make, and the changes that the pickle would apply to it.
struct Call {
  // Distinguishes function(*arguments) from class.__new__(class, *arguments, **keywords), which does not call __init__.
  enum class How : std::uint8_t { called, made_new };
  How how = How::called;
  Id function = kNone;
  Id arguments = kNone;           // a tuple
  std::optional<Id> state = {};   // the state that it would get, by __setstate__ or in its fields
  std::vector<Id> items = {};     // items that would be appended to it, as to a list
  std::vector<Id> pairs = {};     // keys and values that would be set in it, as in a dict
  std::vector<Id> keywords = {};  // name, value, ...
};

class Pickle {
 public:
  Id root() const { return root_; }
  // Returns the size of the program in bytes, including its last step.
  std::uint64_t size() const { return size_; }

  // Returns the number of objects. Their ids begin at 0.
  std::size_t count_objects() const { return nodes_.size(); }
  Kind kind(Id id) const { return nodes_[id].kind; }
  // Returns the offset in the file of the step that made an object.
  std::uint64_t offset(Id id) const { return begin_ + nodes_[id].at; }

  // Each function requires an object of its kind.
  bool boolean(Id id) const { return nodes_[id].first != 0; }
  std::int64_t integer(Id id) const { return static_cast<std::int64_t>(nodes_[id].first); }
  double real(Id id) const;
  std::string_view text(Id id) const;      // for text and bytes; see wide_integer
  std::span<const Id> items(Id id) const;  // for a tuple, list or set; for a dict: key, value, ...
  const Call& call(Id id) const { return calls_[nodes_[id].first]; }
  Global global(Id id) const;
  // Returns true if `container` is a list, set or dict that a step after `call` changed: a function with this argument
  // saw other contents.
  bool is_changed_after(Id container, Id call) const;
  Id persistent(Id id) const { return static_cast<Id>(nodes_[id].first); }

  // Returns the first text with a surrogate (U+D800 to U+DFFF); std::nullopt if there is none. Such a text is not valid
  // UTF-8, but Python allows it. Here it has Kind::bytes: each surrogate takes three bytes, as with "surrogatepass".
  std::optional<Id> lone_surrogate() const { return lone_surrogate_; }

  // Returns the pickle's globals in order, only the first with each name.
  std::vector<Id> list_globals() const;

 private:
  friend class Builder;
  friend class Machine;
  // Marks Node::first of a text that is not in the pickle itself.
  static constexpr std::uint64_t kMade = std::uint64_t{1} << 63;
  // Stores an object. The kind decides the meaning of `first` and `second`: a number; a place in another list; a place
  // and a length.
  struct Node {
    std::uint64_t first = 0;
    std::uint32_t second = 0;
    std::uint32_t at = 0;
    Kind kind = Kind::none;
  };

  std::span<const std::byte> bytes_;
  std::uint64_t begin_ = 0;
  std::deque<Node> nodes_;  // a deque, because it grows without copying the nodes
  std::vector<Id> tuples_;  // the items of all tuples, one tuple after the other
  // Holds the contents of a list, set or dict, and the place of the last step that changed it.
  struct List {
    std::vector<Id> items;
    std::uint32_t changed_at = 0;
  };
  std::deque<List> lists_;
  std::deque<Call> calls_;
  std::deque<std::string> made_texts_;  // texts that the pickle's bytes do not contain as they are
  std::vector<Global> globals_;
  std::optional<Id> lone_surrogate_;
  Id root_ = kNone;
  std::uint64_t size_ = 0;
};

// Runs the program at the beginning of `bytes`, which are at the offset `begin` of the file `name`. Throws invalid_file
// at a step where Python stops, too. Throws unsupported at a step where Python may go on: a step that Python's versions
// run differently, that changes objects outside of the pickle, or whose objects take more memory than the bytes
// justify. Errors have the step's offset in the file. Requires: the bytes outlive the result.
Pickle run(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin = 0);

// Holds the objects that the program made before its end, or before the first step at which run() would throw. Python
// runs all steps before this one.
struct Partial {
  Pickle pickle;              // root() and size() return 0 if `stop` has a value
  std::optional<Error> stop;  // the error that run() would throw
  bool has_run_out = false;   // the program was stopped by the end of the bytes
};
// Runs the program up to its end or its first error. Returns this error in `stop` instead of throwing it.
Partial run_until_error(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin = 0);

// These functions parse the lines of protocol 0 that hold numbers and texts. They accept the lines that CPython accepts
// (Modules/_pickle.c, and Lib/pickle.py where it accepts more).

// Holds an integer of any size.
struct LineInteger {
  std::optional<std::int64_t> value;  // absent: it has more than 64 bits
  std::string bytes;                  // without a value: two's complement, lowest byte first; empty for over 64 digits
};

// Parses a text as Python's int(text, base) does. Allows blanks around the number, a sign, and single underscores
// between digits; with base 0 also 0x, 0o and 0b. Ignores everything from a NUL on, as C does. Returns std::nullopt if
// Python refuses the text. Requires: base is 10 or 0.
std::optional<LineInteger> parse_line_integer(std::string_view text, unsigned base);

// Returns true for a text such as 017, which Python 3 reads in different ways: before 3.14, its C code reads 15, and
// Lib/pickle.py refuses the text; later versions read 17.
bool is_ambiguous_integer(std::string_view text);

// Parses as float(text) does, including " 1_0.5 ", "+Infinity" and "nan". A number that is too large is infinite, and
// one that is too small is zero. Returns std::nullopt if Python refuses the text.
std::optional<double> parse_line_real(std::string_view text);

// Decodes the text between the quotes of a STRING step: \n, \x41, \101 and the other escapes of Python's bytes. Keeps
// unknown escapes. Returns std::nullopt if an escape is incomplete.
std::optional<std::string> decode_line_string(std::string_view text);

// Converts the Latin-1 of a UNICODE step to UTF-8, and decodes \u1234 and \U00012345. In \\u1234 the two backslashes
// belong together, so that it has no escape. Surrogates become three bytes each. Returns std::nullopt if an escape is
// incomplete or too large.
std::optional<std::string> decode_line_unicode(std::string_view text);

}  // namespace poise::pickle
