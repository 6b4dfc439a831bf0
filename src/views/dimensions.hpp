// Dimensions: where elements are that strides spread over a blob, and their copy to where they follow each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "views/strided.hpp"

namespace poise {

struct Dimension {
  std::uint64_t count;
  std::int64_t stride;  // of the source, in bytes
};
using Dimensions = std::vector<Dimension>;

inline std::uint64_t magnitude(std::int64_t stride) {
  return stride < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
}

// Positions are counted modulo 2^64, so that strides of either sign add up. Those of elements are in the blob.
inline std::uint64_t moved(std::uint64_t position, std::uint64_t steps, std::int64_t stride) {
  return position + steps * static_cast<std::uint64_t>(stride);
}
inline const std::byte* moved(const std::byte* position, std::uint64_t steps, std::int64_t stride) {
  return position + static_cast<std::ptrdiff_t>(steps) * static_cast<std::ptrdiff_t>(stride);
}

// Bytes [begin, end) in which elements are.
struct Extent {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t size() const { return end - begin; }
};

// Nothing where it is outside of 64 bits.
std::optional<Extent> extent_of(std::uint64_t first, std::span<const Dimension> dimensions, std::uint64_t item);

// The same elements in the same order with the fewest dimensions. None: a single element.
Dimensions merged(const Strided& layout);

// Copies elements of `item` bytes, the first of which is at `from`, to follow each other at `to`. Requires: a dimension
// at least.
void copy_box(std::span<const Dimension> box, std::size_t item, const std::byte* from, std::byte* to);

// The same for a matrix whose columns are what is close together; `to_stride` bytes are from one row of the copy to the
// next. Requires: elements of 1, 2, 4, 8 or 16 bytes.
void copy_columns(const std::byte* from, const Dimension& rows, const Dimension& row, std::size_t item, std::byte* to,
                  std::size_t to_stride);

}  // namespace poise
