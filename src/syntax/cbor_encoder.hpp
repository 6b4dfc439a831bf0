// CBOR encoding: shortest heads, definite lengths, shortest floats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <poise/value.hpp>

namespace poise::cbor {

// The order of a map's keys: by their text (what zTensor 1.1's writer does), or by their encoding, shorter keys first
// (RFC 8949 section 4.2.1).
enum class KeyOrder { by_text, by_encoding };

// Appends items to a growing string of bytes.
class Encoder {
 public:
  explicit Encoder(KeyOrder order) : order_(order) {}

  // The entries of a map and the items of an array follow their head, in an order that the caller chooses.
  void map(std::uint64_t entries) { head(5, entries); }
  void array(std::uint64_t items) { head(4, items); }
  void text(std::string_view text);  // throws unsupported unless it is UTF-8
  void u64(std::uint64_t number) { head(0, number); }
  // Any value; maps inside are sorted.
  void value(const Value& value);
  // An encoded item.
  void encoded(std::string_view item) { bytes_ += item; }

  std::string_view bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void head(unsigned major, std::uint64_t argument);

  KeyOrder order_;
  std::string bytes_;
};

// A value in core deterministic encoding.
std::string encode(const Value& value);

// True when `a` comes before `b` among a map's text keys in that order.
bool key_before(std::string_view a, std::string_view b, KeyOrder order);

// Writes a number in its shortest float form to the front of `out`; returns how many bytes that is.
std::size_t encode_float(double number, std::array<std::byte, 9>& out);

}  // namespace poise::cbor
