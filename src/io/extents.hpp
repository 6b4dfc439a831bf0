// Finds where parts are stored in files, and the overlaps and gaps of these ranges.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poise/blob.hpp>

namespace poise {

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint32_t tensor = 0;    // the tensor's number, as the caller counts
  std::uint32_t position = 0;  // for messages: the offset of the part's entry in a manifest
  friend auto operator<=>(const Extent&, const Extent&) = default;
};

// Locates bytes for messages. Empty if the place is unknown, or if the bytes are not in a file.
struct Place {
  std::string path;
  std::optional<std::uint64_t> offset;
};
// Returns where the blob's bytes begin.
Place find_place(const Blob& blob);
// Returns where a byte of the blob is stored. If it is not stored anywhere, returns the place of the blob.
Place find_place(const Blob& blob, std::uint64_t byte);

// Returns the first two extents, sorted by their beginnings, that overlap but do not have the same range. Fastest for
// sorted extents. Requires: no extent is empty.
std::optional<std::pair<Extent, Extent>> find_overlap(std::vector<Extent> extents);

// Stands for the bytes [begin, end) of a file.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend auto operator<=>(const FileRange&, const FileRange&) = default;
};

// Returns the gaps between the ranges, in order, from 0 to the end of the last range. Ranges may overlap.
std::vector<FileRange> find_gaps(std::vector<FileRange> ranges);

}  // namespace poise
