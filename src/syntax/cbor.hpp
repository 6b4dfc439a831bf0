// Reads and writes CBOR (RFC 8949).
//
// A Cursor walks the bytes of one item in place, and builds only what the caller asks for. It limits nesting, and
// limits every count by the bytes left. Errors name the keys that lead to the item, and its offset in the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/value.hpp>

#include "bytes/text_table.hpp"
#include "syntax/value_budget.hpp"

namespace poise::cbor {

enum class Rules {
  lenient,        // any well-formed item except unassigned simple values; heads may be longer than necessary, lengths
                  // indefinite, and keys in any order; tags are skipped
  deterministic,  // RFC 8949 section 4.2.1 is enforced; tags and undefined are refused
};

enum class HeadKind : std::uint8_t {
  none,
  unsigned_integer,
  negative_integer,
  bytes,
  text,
  array,
  map,
  boolean,
  null,
  undefined,
  floating,
  tag,
  end
};

// Holds one head in two numbers of 64 bits, which fit registers. Members of single bytes would go through memory, and a
// large manifest has two million heads.
class Head {
 public:
  explicit Head(HeadKind kind, std::uint64_t argument = 0, bool indefinite = false)
      : kind_(std::uint64_t{static_cast<std::uint8_t>(kind)} | (indefinite ? kIndefinite : 0)), argument_(argument) {}

  HeadKind kind() const { return static_cast<HeadKind>(kind_ & 0xffU); }
  bool indefinite() const { return (kind_ & kIndefinite) != 0; }
  // Returns an unsigned integer, a boolean as 0 or 1, a count, a tag, or the length of a string. For a negative integer
  // n, returns -1 - n; for a floating-point number, its bits.
  std::uint64_t argument() const { return argument_; }

 private:
  static constexpr std::uint64_t kIndefinite = 0x100;
  std::uint64_t kind_;
  std::uint64_t argument_;
};

class Map;
class Array;

// States who rejects repeated keys of a map. Deterministic encoding always checks that keys ascend.
enum class Keys : std::uint8_t { unique, checked_by_caller };

class Cursor {
 public:
  // Reads `bytes`, which begin at `offset` of the file `path`. `context` begins every message: "zt 1.1: manifest".
  // Requires: the bytes outlive the cursor.
  Cursor(std::span<const std::byte> bytes, std::uint64_t offset, std::string path, std::string context, Rules rules);

  // Each function returns the next item, and throws if the item has another kind. Text lives as long as the cursor.
  std::uint64_t read_u64();
  std::string_view read_text();
  Map read_map(Keys keys = Keys::unique);
  Array read_array();
  Value read_value();
  // Returns a map whose keys are all text.
  Attributes read_attributes();
  // Skips a null (lenient: or undefined), which marks an absent optional value. Returns false if something else
  // follows.
  bool skip_null();
  // Returns true if the next item is an array.
  bool is_at_array();
  // Skips the next item and checks it.
  void skip();
  // Throws when bytes are left.
  void require_end() const;

  // Returns the offset in the file where the next item begins.
  std::uint64_t position() const { return offset_ + at_; }
  std::uint64_t bytes_left() const { return bytes_.size() - at_; }

  // Throws "zt 1.1: manifest: objects: norm.weight: <problem>", of kind invalid_file unless another is given.
  [[noreturn]] void fail(std::string_view problem, std::uint64_t offset,
                         ErrorKind kind = ErrorKind::invalid_file) const;
  std::string describe(std::string_view problem) const;

 private:
  friend class Map;
  friend class Array;

  struct Frame {
    std::string_view key;
    std::uint64_t index = 0;
    bool is_map = false;
  };

  // Returns the first byte of the next item, after any tags; 0xff if there is none. Stays where it is.
  std::byte peek_first_byte();
  // Reads one head, and moves past the content of a definite string.
  Head decode_head();
  // Reads a head after any tags.
  Head read_head();
  Head read_head(HeadKind expected);
  // Functions with a parameter `begin` do parts of decode_head(). `begin` is the offset of the item in bytes_.
  Head decode_simple(unsigned low, std::size_t begin);
  Head make_floating(double number, std::size_t begin) const;
  std::span<const std::byte> read_bytes(std::uint64_t count, std::size_t begin);
  template <typename Number>
  Number read_number(std::size_t begin);
  [[noreturn]] void fail_cut_off(std::size_t begin) const;
  Value convert_to_value(const Head& item);
  Value read_map_value(const Head& item);
  void require_affordable(bool affordable) const;
  void skip_content(const Head& item);
  // Returns the content of bytes and text. Requires: the item was read last.
  std::string_view read_string(const Head& item);
  std::string_view find_last_string(const Head& item) const;  // reads a definite string
  std::string_view join_pieces(const Head& item);             // reads an indefinite string
  std::string_view read_piece(HeadKind kind);                 // reads a piece of an indefinite string
  void require_shortest(const Head& item, std::size_t begin) const;
  [[noreturn]] void refuse_byte(std::size_t begin) const;
  [[noreturn]] void refuse_form(std::string_view problem, std::size_t begin) const;
  bool skip_break();
  void require_depth() const;       // throws if no array or map may begin here
  KeySet* open_key_set(Keys keys);  // for a map that opens; null: the map needs no set
  std::uint64_t check_count(const Head& item, std::uint64_t least_bytes_each) const;

  std::span<const std::byte> bytes_;
  std::uint64_t offset_;
  std::string path_;
  std::string context_;
  Rules rules_;
  std::size_t max_depth_;
  ValueBudget budget_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::array<Frame, kMaxNesting> frames_;
  std::deque<std::string> joined_;                 // strings in pieces, and keys other than text
  std::vector<std::unique_ptr<KeySet>> key_sets_;  // the sets of the open maps, by depth
};

// Reads the entries of an array: for (auto items = in.read_array(); items.next();) in.read_u64();
class Array {
 public:
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { --in_.depth_; }

  bool next();
  // Returns how many items remain; 0 if the file does not give their number.
  std::uint64_t size_hint() const { return left_; }

 private:
  friend class Cursor;
  Array(Cursor& in, const Head& item);

  Cursor& in_;
  bool indefinite_;
  std::uint64_t left_ = 0;
};

// Walks a map: for (auto map = in.read_map(); map.next();) { if (map.is("version")) ... else in.skip(); }
// Throws for repeated keys, unless Keys::checked_by_caller, and in deterministic encoding for keys that do not ascend.
class Map {
 public:
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;
  ~Map() { --in_.depth_; }

  // Reads the next key; returns false if there is none. Requires: the caller has read or skipped the value before it.
  bool next();
  // Returns the key; empty if it is not text.
  std::string_view key() const { return key_; }
  bool has_text_key() const { return text_key_; }
  // Returns true if the key is this literal. The literal's size is known, so memcmp() becomes a few instructions; with
  // ==, memcmp() would be called.
  template <std::size_t kSize>
  bool is(const char (&name)[kSize]) const {
    return key_.size() == kSize - 1 && std::memcmp(key_.data(), name, kSize - 1) == 0;
  }
  // Returns the key. Requires: it is not text.
  const Value& other_key() const { return other_->key; }
  std::uint64_t key_position() const { return key_position_; }
  // Returns how many entries remain; 0 if the file does not give their number.
  std::uint64_t size_hint() const { return left_; }

 private:
  friend class Cursor;
  Map(Cursor& in, const Head& item, Keys keys = Keys::unique);

  void require_ascending(std::string_view encoded);
  bool is_new_key();
  std::string describe_key() const;

  Cursor& in_;
  bool indefinite_;
  bool text_key_ = false;
  std::uint64_t left_ = 0;
  std::uint64_t key_position_ = 0;
  std::size_t keys_read_ = 0;
  std::string_view key_;
  std::string_view previous_;  // deterministic: the previous key, encoded
  KeySet* keys_ = nullptr;     // lenient: the text keys so far
  struct OtherKeys {
    Value key;    // the last key
    KeySet seen;  // lenient: all of them, encoded
  };
  std::unique_ptr<OtherKeys> other_;  // keys other than text; null: none yet
};

// Orders a map's keys by their text (as zTensor 1.1's writer does), or by their encoding, shorter keys first (RFC 8949
// section 4.2.1).
enum class KeyOrder { by_text, by_encoding };

// Appends items to a growing string of bytes: shortest heads, definite lengths, shortest floats.
class Encoder {
 public:
  explicit Encoder(KeyOrder order) : order_(order) {}

  // Each function begins a map or an array. The entries or items follow the head, in an order that the caller chooses.
  void begin_map(std::uint64_t entries) { append_head(5, entries); }
  void begin_array(std::uint64_t items) { append_head(4, items); }
  void append_text(std::string_view text);  // throws unsupported unless it is UTF-8
  void append_u64(std::uint64_t number) { append_head(0, number); }
  // Appends any value, with the entries of maps sorted.
  void append_value(const Value& value);
  // Appends an item that is encoded already.
  void append_encoded(std::string_view item) { bytes_ += item; }
  void append_member(std::string_view key, std::string_view value) {
    append_text(key);
    append_text(value);
  }
  void append_member(std::string_view key, std::uint64_t value) {
    append_text(key);
    append_u64(value);
  }
  void append_member(std::string_view key, const Attributes& value) {
    append_text(key);
    append_value(value);
  }

  std::string_view bytes() const { return bytes_; }
  std::string release() { return std::move(bytes_); }

 private:
  void append_head(unsigned major, std::uint64_t argument);

  KeyOrder order_;
  std::string bytes_;
};

// Returns a value in core deterministic encoding.
std::string encode(const Value& value);

// Returns true when `a` comes before `b` among a map's text keys in that order.
bool is_key_before(std::string_view a, std::string_view b, KeyOrder order);

// Writes a number in its shortest float form to the front of `out`; returns how many bytes that is.
std::size_t encode_float(double number, std::array<std::byte, 9>& out);

}  // namespace poise::cbor
