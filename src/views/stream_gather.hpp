// stream_gather: strided elements of a blob that can only be read from front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <poise/blob.hpp>

#include "views/dimensions.hpp"

namespace poise {

// Elements that go to contiguous places, in row-major order.
struct PlacedBox {
  std::uint64_t position;  // of the first element in the blob
  Dimensions dimensions;
  std::byte* to;
};

// Copies the elements, of `item` bytes each, in one pass over the blob as far as its last element. Takes constant
// memory. Throws what reading the blob throws. Requires: the elements are in the blob.
void gather_from_stream(const Blob& blob, std::span<const PlacedBox> boxes, std::size_t item);

}  // namespace poise
