// strided: elements that are spread over a blob, in row-major order and little-endian, computed when they are read.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

// Where a tensor's elements are in a blob.
struct Strided {
  Shape shape;
  // In bytes, one a dimension: from an element to the next one along it. Negative where that one comes first, 0 where
  // all are the same one.
  std::vector<std::int64_t> strides;
  std::uint64_t offset = 0;  // of the element whose indices are all 0
  unsigned item_bytes = 0;   // of an element
  unsigned swapped =
      0;  // bytes of each number in an element that is big-endian, a divisor of item_bytes; 0: little-endian
};

// The strides of elements that follow each other with the last index fastest ("C order"), or the first one ("Fortran
// order"). Requires: the elements' bytes fit 63 bits.
std::vector<std::int64_t> row_major_strides(const Shape& shape, unsigned item_bytes);
std::vector<std::int64_t> column_major_strides(const Shape& shape, unsigned item_bytes);

// The elements one after the other. The blob itself, or a part of its file, where they are so already. Takes constant
// memory, but for blobs that cannot be read at any offset: those are decoded as a whole when bytes are first read,
// within the limit of LoadedBlob. Throws invalid_file (without path) where an element is not in the blob, and where all
// of them together take 2^64 bytes. Requires: as many strides as dimensions; item_bytes > 0.
BlobPtr make_strided_blob(BlobPtr blob, const Strided& layout);

}  // namespace poise
