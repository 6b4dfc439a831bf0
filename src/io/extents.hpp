// Extents: the ranges of a file that parts take, and the gaps between them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace poise {

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint32_t tensor = 0;  // of the part, if known; the caller defines these numbers
  std::uint32_t position = 0;
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

// Returns the first two extents, by their beginnings, that overlap without being equal. Fastest when extents come in
// that order. Requires: none is empty.
std::optional<std::pair<Extent, Extent>> find_overlap(std::vector<Extent> extents);

// Bytes [begin, end) of a file.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend auto operator<=>(const FileRange&, const FileRange&) = default;
};

// Returns the ranges from 0 to the end of the last range that no range covers, in order. Ranges may overlap.
std::vector<FileRange> gaps_between(std::vector<FileRange> ranges);

}  // namespace poise
