// Dimensions: the places of strided elements in a blob, and copies of them to contiguous places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <poise/blob.hpp>

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

// Positions wrap modulo 2^64, so strides of either sign add up. Positions of elements are inside the blob.
inline std::uint64_t moved(std::uint64_t position, std::uint64_t steps, std::int64_t stride) {
  return position + steps * static_cast<std::uint64_t>(stride);
}
inline const std::byte* moved(const std::byte* position, std::uint64_t steps, std::int64_t stride) {
  return position + static_cast<std::ptrdiff_t>(steps) * static_cast<std::ptrdiff_t>(stride);
}

// The range [begin, end) of bytes that holds the elements.
struct ElementRange {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t size() const { return end - begin; }
};

// Returns std::nullopt on overflow of 64 bits.
std::optional<ElementRange> find_element_range(std::uint64_t first, std::span<const Dimension> dimensions,
                                               std::uint64_t item);

// Returns the same elements in the same order with the fewest dimensions. Empty for a single element.
Dimensions merged(const Strided& layout);

// Copies elements of `item` bytes, the first at `from`, to contiguous places at `to`. Requires: at least one dimension.
void copy_box(std::span<const Dimension> box, std::size_t item, const std::byte* from, std::byte* to);

// Copies a matrix with small strides along its columns; rows of the copy are `to_stride` bytes apart. Requires:
// elements of 1, 2, 4, 8 or 16 bytes.
void copy_columns(const std::byte* from, const Dimension& rows, const Dimension& row, std::size_t item, std::byte* to,
                  std::size_t to_stride);

// Elements that go to contiguous places, in row-major order.
struct PlacedBox {
  std::uint64_t position;  // of the first element in the blob
  Dimensions dimensions;
  std::byte* to;
};

// Copies the elements, of `item` bytes each, in one pass over the blob, which may only be
// readable from front to back, as far as its last element. Takes constant
// memory. Throws what reading the blob throws. Requires: the elements are in the blob.
void gather_from_stream(const Blob& blob, std::span<const PlacedBox> boxes, std::size_t item);

}  // namespace poise
