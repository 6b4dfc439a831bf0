// Reads fields and sections of an ALT file, and collects warnings about differences from the canonical form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/model.hpp>

#include "bytes/byte_reader.hpp"
#include "formats/alt/layout.hpp"

namespace poise::alt {

// Holds a section whose marker and size have been read.
struct OpenSection {
  std::uint64_t begin = 0;
  std::int64_t size = 0;  // the section_size field
};

class FileReader {
 public:
  // Begins every message with `context`, such as "alt v2". Requires: the source outlives the reader.
  FileReader(const Source& source, std::string context)
      : bytes_(source, std::move(context)), file_bytes_(source.size()) {}

  ByteReader& bytes() { return bytes_; }

  // Reads a length and a text of that length. Throws invalid_file for invalid UTF-8 and for NUL bytes.
  std::string read_text(std::string_view field);
  // Reads a text whose length has been read.
  std::string read_text(std::int32_t length, std::string_view field);
  // Reads a byte that must be 0 or 1.
  bool read_flag(std::string_view field);
  // Reads a number that must not be negative.
  std::int32_t read_count32(std::string_view field) { return check_count(field, bytes_.read_i32(field)); }
  std::int64_t read_count64(std::string_view field) { return check_count(field, bytes_.read_i64(field)); }

  // Reads marker and size of a section. Throws invalid_file for another marker, and for a size that is negative or
  // reaches beyond the file's end.
  OpenSection open_section(Section section);
  // Closes a section after its last field, and skips the padding. Warns of a section_size that counts the section by a
  // SizeRule other than whole, and throws invalid_file for one that fits no rule. `uncounted` is the number of bytes
  // that SizeRule::too_small leaves out; 0: that rule does not apply.
  void close_section(const OpenSection& section, std::uint64_t uncounted = 0);
  // Throws invalid_file unless a section or the end marker begins here. Does not move the reader.
  void require_marker();

  // Adds a warning about a difference from the canonical form. After 1000 warnings, adds only one more, which states
  // that further warnings are left out.
  void warn(std::string_view field, std::string_view problem, std::uint64_t offset);
  std::vector<Finding> release_warnings() { return std::move(warnings_); }
  Dialect& dialect() { return dialect_; }

  // Moves to the next multiple of kAlignment, unless the reader is at one. Warns of the first byte of padding that is
  // not zero, or throws invalid_file for it while only clean padding is allowed.
  void skip_padding();
  enum class Padding : std::uint8_t { clean, any };
  void allow_padding(Padding padding) { padding_ = padding; }

  // Holds a state to which the reader returns if an interpretation of the bytes fails.
  struct Mark {
    std::uint64_t position;
    std::size_t warnings;
    Dialect dialect;
  };
  Mark make_mark() const { return {bytes_.position(), warnings_.size(), dialect_}; }
  void rewind(const Mark& mark);

 private:
  // Throws invalid_file for a negative value. Requires: the value has just been read, since its offset is computed from
  // the position.
  template <typename Count>
  Count check_count(std::string_view field, Count value) const {
    if (value < 0)
      bytes_.fail(field, fmt::format("expected 0 or more, found {}", value), bytes_.position() - sizeof value);
    return value;
  }

  ByteReader bytes_;
  std::uint64_t file_bytes_;
  std::vector<Finding> warnings_;
  Dialect dialect_;
  Padding padding_ = Padding::any;
};

// Calls `read` for each section, with the reader past the section's size; `read` must leave it past the section's
// padding. `order` lists the sections in the required order. Warns of a missing section, and of an end marker whose
// size is not `end_bytes` (4 or 8). Throws invalid_file for sections in another order, and for bytes after the end
// marker.
void read_sections(FileReader& reader, std::span<const Section> order, std::uint64_t end_bytes,
                   const std::function<void(Section section, const OpenSection& open)>& read);

// A reading is one of several ways to interpret the same bytes.

// Calls `read(reading, progress)` for the readings in turn, each from the same place, and returns the result of the
// first that does not throw invalid_file. `read` counts in `progress` how many records it understood. Tries all
// readings with clean padding first, because padding that is not zero may be part of a record that a reading missed. If
// none fits, throws the error of the reading with the most records or, among equals, of the one that came furthest.
template <typename Reading, typename Read>
auto try_readings(FileReader& reader, std::span<const Reading> readings, Read&& read) {
  const FileReader::Mark mark = reader.make_mark();
  std::optional<Error> closest;
  std::pair<std::uint64_t, std::uint64_t> furthest;
  for (const FileReader::Padding padding : {FileReader::Padding::clean, FileReader::Padding::any}) {
    closest.reset();
    for (const Reading& reading : readings) {
      std::uint64_t progress = 0;
      try {
        reader.rewind(mark);
        reader.allow_padding(padding);
        auto result = read(reading, progress);
        reader.allow_padding(FileReader::Padding::any);
        return result;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::invalid_file) throw;
        const std::pair reached{progress, error.offset().value_or(0)};
        if (closest && reached <= furthest) continue;
        closest.emplace(error);
        furthest = reached;
      }
    }
  }
  throw *closest;
}

}  // namespace poise::alt
