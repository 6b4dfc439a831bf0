// Reads and writes protocol buffer messages; protobuf.hpp describes the encoding. Source:
// https://protobuf.dev/programming-guides/encoding.
#include "syntax/protobuf.hpp"

#include <array>

#include <fmt/format.h>

#include "bytes/little_endian.hpp"

namespace poise::protobuf {
namespace {

constexpr std::uint64_t kMaxNumber = (1U << 29) - 1;
constexpr std::string_view kUnknown = "unknown field";

}  // namespace

Message::Message(const Source& source, std::string context, std::uint64_t begin, std::uint64_t end)
    : source_(source), context_(std::move(context)), reader_(source, context_, begin, end), start_(begin) {}

bool Message::next() {
  if (pending_) skip_value();
  if (reader_.remaining() == 0) return false;
  start_ = reader_.position();
  const std::uint64_t tag = read_varint("tag");
  number_ = tag >> 3;
  if (number_ == 0 || number_ > kMaxNumber)
    fail("tag", fmt::format("field number {}, expected 1 to {}", number_, kMaxNumber));
  const std::uint64_t wire = tag & 7;
  if (wire != 0 && wire != 1 && wire != 2 && wire != 5)
    fail("tag", fmt::format("wire type {} of field {}, expected 0, 1, 2 or 5", wire, number_));
  wire_ = static_cast<Wire>(wire);
  pending_ = true;
  return true;
}

std::uint64_t Message::read_integer(std::string_view field) {
  require_wire(Wire::varint, field);
  return read_varint(field);
}

float Message::read_f32(std::string_view field) {
  require_wire(Wire::fixed32, field);
  return reader_.read_f32(field);
}

std::string_view Message::read_text(std::string_view field) {
  require_wire(Wire::bytes, field);
  return reader_.read_text(read_varint(field), field);
}

Message::Place Message::read_place(std::string_view field) {
  require_wire(Wire::bytes, field);
  const std::uint64_t length = read_varint(field);
  const std::uint64_t begin = reader_.position();
  reader_.skip(length, field);
  return {begin, begin + length};
}

Message::Place Message::read_packed(std::string_view field, Wire wire) {
  if (wire_ == Wire::bytes) return read_place(field);
  require_wire(wire, field);
  const std::uint64_t begin = reader_.position();
  pending_ = true;
  skip_value();
  return {begin, reader_.position()};
}

void Message::visit_integers(std::string_view field, FunctionRef<void(std::uint64_t)> visit) {
  if (wire_ != Wire::bytes) return visit(read_integer(field));
  const Place whole = read_place(field);
  reader_.seek(whole.begin);
  while (reader_.position() < whole.end) visit(read_varint(field));
  if (reader_.position() > whole.end) fail(field, "the last integer ends after the field");
}

Message Message::read_message(std::string_view field, std::string_view context) {
  require_wire(Wire::bytes, field);
  const std::uint64_t length = read_varint(field);
  const std::uint64_t begin = reader_.position();
  reader_.skip(length, field);
  return Message(source_, fmt::format("{}: {}", context_, context), begin, begin + length);
}

void Message::require_wire(Wire expected, std::string_view field) {
  if (wire_ != expected)
    fail(field, fmt::format("wire type {}, expected {}", static_cast<int>(wire_), static_cast<int>(expected)));
  pending_ = false;
}

void Message::skip_value() {
  pending_ = false;
  switch (wire_) {
    case Wire::varint: read_varint(kUnknown); return;
    case Wire::fixed64: reader_.skip(8, kUnknown); return;
    case Wire::bytes: reader_.skip(read_varint(kUnknown), kUnknown); return;
    case Wire::fixed32: reader_.skip(4, kUnknown); return;
  }
}

std::uint64_t Message::read_varint(std::string_view field) {
  const std::uint64_t begin = reader_.position();
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = reader_.read_u8(field);
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  reader_.fail(field, "a varint of more than 64 bits", begin);
}

void MessageWriter::append_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void MessageWriter::append_integer(std::uint64_t number, std::uint64_t value) {
  append_varint(number << 3);
  append_varint(value);
}

void MessageWriter::append_f32(std::uint64_t number, float value) {
  append_varint(number << 3 | 5);
  std::array<std::byte, sizeof value> bytes;
  store_le(bytes.data(), value);
  for (const std::byte byte : bytes) bytes_ += static_cast<char>(byte);
}

void MessageWriter::append_text(std::uint64_t number, std::string_view value) {
  append_varint(number << 3 | 2);
  append_varint(value.size());
  bytes_ += value;
}

}  // namespace poise::protobuf
