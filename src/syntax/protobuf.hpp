// Reads and writes protocol buffer messages, field by field (https://protobuf.dev/programming-guides/encoding).
//
// A message is a list of fields. A field is a tag (the varint number << 3 | wire type) and a value: a varint (wire type
// 0), 8 bytes (1), a varint length and that many bytes (2: text, bytes, a message), or 4 bytes (5). A varint holds 7
// bits a byte, the lowest first; every byte but the last has its high bit set. Groups (3 and 4), which are out of use,
// are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bytes/byte_reader.hpp"
#include "bytes/function_ref.hpp"

namespace poise::protobuf {

// Walks the fields of one message: while (message.next()) { switch (message.number()) ... }. Skips a field if the
// caller does not read its value. Reads no bytes outside [begin, end).
//
// Throws invalid_file "context: field: problem", at the offset of the field or of the wrong byte in it: for a value of
// another wire type than the caller reads, a value that ends after the message, a varint of more than 64 bits, and a
// tag whose number or wire type is not valid.
class Message {
 public:
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  // Holds a range of offsets in the source.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  // Begins every error message with `context`. Requires: the source outlives the message.
  Message(const Source& source, std::string context, std::uint64_t begin, std::uint64_t end);

  // Moves to the next field. Returns false at the end of the message.
  bool next();

  // Returns the number of the field that next() found.
  std::uint64_t number() const { return number_; }
  // Returns the offset of the field's tag; before the first next(), the offset of the message.
  std::uint64_t field_offset() const { return start_; }

  // Returns the value of the field; `field` is its name in errors. Requires: next() returned true, and the value has
  // not been read yet.
  std::uint64_t read_integer(std::string_view field);
  bool read_boolean(std::string_view field) { return read_integer(field) != 0; }
  float read_f32(std::string_view field);
  // Returns a text, which is valid until the next call on this message.
  std::string_view read_text(std::string_view field);
  // Returns where the bytes of a text, bytes or packed field are.
  Place read_place(std::string_view field);
  // Returns where the numbers of a repeated field are. A packed field (wire type 2) has all of them. Another field has
  // a single number, of wire type `wire`; its bytes are the same as in a packed field.
  Place read_packed(std::string_view field, Wire wire);
  // Calls visit(value) for the integers of a repeated field, packed or one by one.
  void visit_integers(std::string_view field, FunctionRef<void(std::uint64_t)> visit);
  // Returns a message in this one. In its errors, `context` follows this message's context.
  Message read_message(std::string_view field, std::string_view context);

  // Throws invalid_file at the field.
  [[noreturn]] void fail(std::string_view field, std::string_view problem) const {
    reader_.fail(field, problem, start_);
  }

 private:
  void require_wire(Wire expected, std::string_view field);
  void skip_value();
  std::uint64_t read_varint(std::string_view field);

  const Source& source_;
  std::string context_;
  ByteReader reader_;
  std::uint64_t start_;
  std::uint64_t number_ = 0;
  Wire wire_ = Wire::varint;
  bool pending_ = false;  // the value has not been read
};

// Appends fields one after the other. Callers make a nested message first.
class MessageWriter {
 public:
  void append_integer(std::uint64_t number, std::uint64_t value);
  void append_boolean(std::uint64_t number, bool value) { append_integer(number, value ? 1 : 0); }
  // Appends an int32 as a varint. As the format requires, a negative value is extended to 64 bits.
  void append_signed(std::uint64_t number, std::int32_t value) {
    append_integer(number, static_cast<std::uint64_t>(std::int64_t{value}));
  }
  void append_f32(std::uint64_t number, float value);
  void append_text(std::uint64_t number, std::string_view value);
  void append_message(std::uint64_t number, const MessageWriter& message) { append_text(number, message.bytes_); }

  std::string release() { return std::move(bytes_); }

 private:
  void append_varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace poise::protobuf
