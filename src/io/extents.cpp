#include "io/extents.hpp"

#include <algorithm>

namespace poise {

Place find_place(const Blob& blob) {
  const auto at = blob.stored();
  return at ? Place{at->source->name(), at->offset} : Place();
}

Place find_place(const Blob& blob, std::uint64_t byte) {
  const auto at = byte < blob.size() ? blob.stored_byte(byte) : std::nullopt;
  return at ? Place{at->source->name(), at->offset} : find_place(blob);
}

std::optional<std::pair<Extent, Extent>> find_overlap(std::vector<Extent> extents) {
  if (!std::ranges::is_sorted(extents)) std::ranges::sort(extents);
  const auto have_overlap = [](const Extent& a, const Extent& b) {
    return (a.begin != b.begin || a.length != b.length) && b.begin - a.begin < a.length;
  };
  const auto found = std::ranges::adjacent_find(extents, have_overlap);
  if (found == extents.end()) return std::nullopt;
  return std::pair(*found, *(found + 1));
}

std::vector<FileRange> find_gaps(std::vector<FileRange> ranges) {
  std::ranges::sort(ranges);
  std::vector<FileRange> gaps;
  std::uint64_t position = 0;
  for (const FileRange& range : ranges) {
    if (range.begin > position) gaps.push_back({position, range.begin});
    position = std::max(position, range.end);
  }
  return gaps;
}

}  // namespace poise
