// A ByteWriter appends little-endian fields to a growing buffer. It is the inverse of ByteReader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bytes/little_endian.hpp"

namespace poise {

class ByteWriter {
 public:
  void append_u8(std::uint8_t value) { append_number(value); }
  void append_i8(std::int8_t value) { append_number(value); }
  void append_u16(std::uint16_t value) { append_number(value); }
  void append_u32(std::uint32_t value) { append_number(value); }
  void append_i32(std::int32_t value) { append_number(value); }
  void append_u64(std::uint64_t value) { append_number(value); }
  void append_i64(std::int64_t value) { append_number(value); }
  void append_f32(float value) { append_number(value); }
  void append_text(std::string_view value) { append(std::as_bytes(std::span(value.data(), value.size()))); }
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void append_zeros(std::size_t count) { bytes_.resize(bytes_.size() + count); }

  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  template <typename T>
  void append_number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    store_le(bytes_.data() + at, value);
  }

  std::vector<std::byte> bytes_;
};

}  // namespace poise
