// FileReader: fields and sections of an ALT file, and what about them is not canonical.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "bytes/byte_reader.hpp"
#include "formats/alt/dialect.hpp"
#include "formats/alt/layout.hpp"

namespace poise::alt {

// A section whose marker and size have been read.
struct OpenSection {
  std::uint64_t begin = 0;
  std::int64_t size = 0;  // what section_size says
};

class FileReader {
 public:
  // `context` opens every message: "alt v2". Requires: the range outlives the reader.
  FileReader(const ByteRange& range, std::string context)
      : bytes_(range, std::move(context)), file_bytes_(range.size()) {}

  ByteReader& bytes() { return bytes_; }

  // Length and text. Fails when it is no UTF-8 or holds a NUL.
  std::string text(std::string_view field);
  // The text whose length has been read already.
  std::string text(std::int32_t length, std::string_view field);
  // A byte that is 0 or 1.
  bool flag(std::string_view field);
  // A number that cannot be negative.
  std::int32_t count32(std::string_view field);
  std::int64_t count64(std::string_view field);

  // Reads marker and size at the position, which is a section's beginning.
  OpenSection open_section(Section section);
  // After the last field: checks section_size against what was read, and moves over the padding. `unsaid` is a number
  // of bytes that the files of some writers leave out of section_size, 0 for none.
  void close_section(const OpenSection& section, std::uint64_t unsaid = 0);
  // Fails unless a section or the end marker begins here. Moves nothing.
  void require_marker();

  // Notes something that the canonical form has otherwise.
  void warn(std::string_view field, std::string_view problem, std::uint64_t offset);
  std::vector<Finding> take_warnings() { return std::move(warnings_); }
  Dialect& dialect() { return dialect_; }

  // Moves to the next section boundary. Bytes before it that are not zero are noted or, while clean padding is
  // required, an error.
  void skip_padding();
  enum class Padding : std::uint8_t { clean, any };
  void require_padding(Padding padding) { padding_ = padding; }

  // A place to come back to when a reading of what follows turns out not to fit.
  struct Mark {
    std::uint64_t position;
    std::size_t warnings;
    Dialect dialect;
  };
  Mark mark() const { return {bytes_.position(), warnings_.size(), dialect_}; }
  void rewind(const Mark& mark);

 private:
  ByteReader bytes_;
  std::uint64_t file_bytes_;
  std::vector<Finding> warnings_;
  Dialect dialect_;
  Padding padding_ = Padding::any;
};

}  // namespace poise::alt
