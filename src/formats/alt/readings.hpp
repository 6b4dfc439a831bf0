// Readings: tries several ways to read the same bytes until one fits exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <poise/error.hpp>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// Calls `read(reading, progress)` for the readings in turn, each from the same place, and returns the result of the
// first that does not throw invalid_file. `read` counts in `progress` how many records it understood. Padding that is
// not zero may be part of a record that a reading missed, so readings with clean padding come first. If none fits,
// throws the error of the reading that understood most: most records, then the furthest byte, then the first.
template <typename Reading, typename Read>
auto read_first_that_fits(FileReader& reader, std::span<const Reading> readings, Read&& read) {
  const FileReader::Mark mark = reader.mark();
  std::optional<Error> closest;
  std::pair<std::uint64_t, std::uint64_t> furthest;
  for (const FileReader::Padding padding : {FileReader::Padding::clean, FileReader::Padding::any}) {
    closest.reset();
    for (const Reading& reading : readings) {
      std::uint64_t progress = 0;
      try {
        reader.rewind(mark);
        reader.require_padding(padding);
        auto result = read(reading, progress);
        reader.require_padding(FileReader::Padding::any);
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
