// Metadata as a GGUF header has it, made entry by entry.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <poise/value.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/gguf/header.hpp"

namespace poise::gguf {

class KeyValues {
 public:
  // Each throws internal for a key that is there already.
  void text(std::string_view key, std::string_view value);
  void u16(std::string_view key, std::uint16_t value);
  void u32(std::string_view key, std::uint64_t value);  // throws unsupported for more than 32 bits
  void i32(std::string_view key, std::int32_t value);
  void f32(std::string_view key, double value);
  void boolean(std::string_view key, bool value);
  // An array, whose items the caller appends to what this returns.
  ByteWriter& array(std::string_view key, ValueType items, std::uint64_t count);
  static void append_text(ByteWriter& out, std::string_view text);

  // Any value in the narrowest type that Poise reads back as the same: integers as u32, u64, i32 or i64, numbers as f32 or f64, maps as JSON text.
  // Items of an array have one type.
  void value(std::string_view key, const Value& value);

  // Does it hold these as an array, not as JSON text?
  static bool holds(const Value::Array& items);

  bool has(std::string_view key) const { return keys_.contains(key); }
  std::uint64_t count() const { return keys_.size(); }
  std::span<const std::byte> bytes() const { return out_.bytes(); }

 private:
  void begin(std::string_view key, ValueType type);

  ByteWriter out_;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace poise::gguf
