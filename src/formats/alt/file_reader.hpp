// FileReader: reads fields and sections of an ALT file, and collects what is not canonical.
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
  std::int64_t size = 0;  // the section_size field
};

class FileReader {
 public:
  // `context` begins every message: "alt v2". Requires: the range outlives the reader.
  FileReader(const ByteRange& range, std::string context)
      : bytes_(range, std::move(context)), file_bytes_(range.size()) {}

  ByteReader& bytes() { return bytes_; }

  // Length and text. Fails for invalid UTF-8 and for a NUL.
  std::string text(std::string_view field);
  // A text whose length has been read.
  std::string text(std::int32_t length, std::string_view field);
  // A byte that is 0 or 1.
  bool flag(std::string_view field);
  // A number that cannot be negative.
  std::int32_t count32(std::string_view field);
  std::int64_t count64(std::string_view field);

  // Reads marker and size at the position, where a section begins.
  OpenSection open_section(Section section);
  // After the last field: checks section_size against what was read, and skips the padding. `unsaid`: bytes that some
  // writers do not count in section_size, or 0.
  void close_section(const OpenSection& section, std::uint64_t unsaid = 0);
  // Fails unless a section or the end marker begins here. Keeps the position.
  void require_marker();

  // Adds a warning about a difference from the canonical form.
  void warn(std::string_view field, std::string_view problem, std::uint64_t offset);
  std::vector<Finding> take_warnings() { return std::move(warnings_); }
  Dialect& dialect() { return dialect_; }

  // Moves to the next section boundary. Bytes before it that are not zero give a warning or, while clean padding is
  // required, an error.
  void skip_padding();
  enum class Padding : std::uint8_t { clean, any };
  void require_padding(Padding padding) { padding_ = padding; }

  // A position to return to when a reading does not fit.
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
