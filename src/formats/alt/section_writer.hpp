// SectionWriter: the fields of one ALT section, checked against the widths that the format gives them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bytes/byte_writer.hpp"

namespace poise::alt {

class SectionWriter {
 public:
  // `section` opens every refusal: "parameters".
  explicit SectionWriter(std::string section) : section_(std::move(section)) {}

  // These throw unsupported, naming section and field, when the value is no int32, or for a count negative.
  void i32(std::string_view field, std::int64_t value);
  void count(std::string_view field, std::uint64_t value);
  void i64(std::uint64_t value) { fields_.u64(value); }
  void f32(float value) { fields_.f32(value); }
  void flag(bool value) { fields_.u8(value ? 1 : 0); }
  // Length and bytes. Throws unsupported when the text is no UTF-8, holds a NUL or is longer than int32 can say.
  void text(std::string_view field, std::string_view value);
  // The two halves of text(), for records that keep them apart.
  void text_length(std::string_view field, std::string_view value);
  void text_bytes(std::string_view value) { fields_.text(value); }

  const ByteWriter& fields() const { return fields_; }

 private:
  [[noreturn]] void refuse(std::string_view field, std::string_view problem) const;

  std::string section_;
  ByteWriter fields_;
};

}  // namespace poise::alt
