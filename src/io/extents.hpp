// Extents: the bytes of a file that parts take, and what is between them.
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
  std::uint32_t tensor = 0;  // what takes them, and where the file says so: what these numbers mean is the caller's
  std::uint32_t position = 0;
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

// Two extents are the same bytes, or share none: the first two that break that rule, in the order of their beginnings.
// Quickest where extents come in that order. Requires: none is empty.
std::optional<std::pair<Extent, Extent>> find_overlap(std::vector<Extent> extents);

// Bytes [begin, end) of a file.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend auto operator<=>(const FileRange&, const FileRange&) = default;
};

// The bytes from 0 to the end of the last range that are in none of them, in order. Ranges may overlap.
std::vector<FileRange> gaps_between(std::vector<FileRange> ranges);

}  // namespace poise
