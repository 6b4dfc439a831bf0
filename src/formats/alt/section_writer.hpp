// SectionWriter: the fields of one ALT section, checked against their widths.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bytes/byte_writer.hpp"

namespace poise::alt {

class SectionWriter {
 public:
  // `section` begins every error: "parameters".
  explicit SectionWriter(std::string section) : section_(std::move(section)) {}

  // These throw unsupported, naming section and field, for a value that does not fit int32, and for a negative count.
  void i32(std::string_view field, std::int64_t value);
  void count(std::string_view field, std::uint64_t value);
  void i64(std::uint64_t value) { fields_.u64(value); }
  void f32(float value) { fields_.f32(value); }
  void flag(bool value) { fields_.u8(value ? 1 : 0); }
  // Length and bytes. Throws unsupported for invalid UTF-8, a NUL, and a length that does not fit int32.
  void text(std::string_view field, std::string_view value);
  // The two halves of text(), for records that store them apart.
  void text_length(std::string_view field, std::string_view value);
  void text_bytes(std::string_view value) { fields_.text(value); }

  const ByteWriter& fields() const { return fields_; }

 private:
  [[noreturn]] void refuse(std::string_view field, std::string_view problem) const;

  std::string section_;
  ByteWriter fields_;
};

}  // namespace poise::alt
