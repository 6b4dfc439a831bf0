// ByteFile: a file as a list of named fields, so that a test can name the field that it breaks and the place to which
// an error has to point. It uses no code under test.
//
//   file.i32("version", 2).text("name", "x").pad("padding", 32)     append, and fields have names
//   file.i32("version", 3)                                          a name that is there already: replace its bytes
//   file.offset("version")                                          where it begins now
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/bytes.hpp"

namespace poise::support {

class ByteFile {
 public:
  // Appends a field, or replaces the bytes of the one with that name.
  ByteFile& raw(std::string_view name, std::string bytes);
  ByteFile& u8(std::string_view name, std::uint8_t value) { return raw(name, le(value, 1)); }
  ByteFile& u16(std::string_view name, std::uint16_t value) { return raw(name, le(value, 2)); }
  ByteFile& u32(std::string_view name, std::uint32_t value) { return raw(name, le(value, 4)); }
  ByteFile& i32(std::string_view name, std::int64_t value) {
    return raw(name, le(static_cast<std::uint64_t>(value), 4));
  }
  ByteFile& i64(std::string_view name, std::int64_t value) {
    return raw(name, le(static_cast<std::uint64_t>(value), 8));
  }
  ByteFile& u64(std::string_view name, std::uint64_t value) { return raw(name, le(value, 8)); }
  ByteFile& f32(std::string_view name, float value);
  // Appends two fields: "name length" (i32) and "name".
  ByteFile& text(std::string_view name, std::string_view value);
  // Appends zero bytes up to a multiple of `alignment`. Their number follows from the fields before, at the end.
  ByteFile& pad(std::string_view name, std::size_t alignment);
  // Appends an i64: the number of bytes from the beginning of one field to the end of another, at the end.
  ByteFile& size_of(std::string_view name, std::string_view first, std::string_view last);

  // Appends all fields of another file, with a prefix to their names.
  ByteFile& append(const ByteFile& other, std::string_view prefix = "");
  ByteFile& erase(std::string_view name);
  // Ends the file before a field, or that many bytes after the field begins.
  ByteFile& cut(std::string_view name, std::size_t bytes = 0);

  std::uint64_t offset(std::string_view name) const;
  std::uint64_t size(std::string_view name) const;
  std::string bytes() const;

 private:
  struct Field {
    std::string name;
    std::string bytes;
    std::size_t alignment = 0;  // of padding
    std::string first;          // of a size
    std::string last;
  };
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  Field& field(std::string_view name);  // appended if need be
  std::size_t index(std::string_view name) const;
  std::vector<Place> places() const;

  std::vector<Field> fields_;
  std::size_t cut_ = SIZE_MAX;
};

}  // namespace poise::support
