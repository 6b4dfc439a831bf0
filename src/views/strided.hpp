// Elements spread over a blob, as row-major little-endian elements, computed when read.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

// The places of a tensor's elements in a blob.
struct Strided {
  Shape shape;
  // In bytes, one for each dimension: from an element to the next along it. Negative for reversed order, 0 for a
  // repeated element.
  std::vector<std::int64_t> strides;
  std::uint64_t offset = 0;  // of the element whose indices are all 0
  unsigned item_bytes = 0;   // of an element
  // Bytes of each number in an element that is big-endian, a divisor of item_bytes; 0: little-endian.
  unsigned swapped = 0;
};

// Returns the strides of contiguous elements with the last index fastest ("C order"), or the first one ("Fortran
// order"). Requires: the elements' bytes fit 63 bits.
std::vector<std::int64_t> row_major_strides(const Shape& shape, unsigned item_bytes);
std::vector<std::int64_t> column_major_strides(const Shape& shape, unsigned item_bytes);

// Returns the elements, contiguous: the blob itself, or a range of its file, if they are already. Takes constant
// memory, except for blobs that can only be read from front to back. Of those it keeps as many elements as
// compute_decoded_limit() allows, but at least 64 MiB, with a pass over the blob for each such run of elements; with
// several runs it can only be read from front to back itself. A whole blob whose elements are those of a transposed
// matrix has stored_as(). Throws invalid_file (without path) for an element outside the blob, and when the elements
// take 2^64 bytes or more. Requires: as many strides as dimensions; item_bytes > 0.
BlobPtr make_strided_blob(BlobPtr blob, const Strided& layout);

// Returns a matrix, or each of a stack, with its rows as columns. Elements of a dense matrix move when read, unless it
// is stored transposed; blocks keep their bytes and run the other way. Requires: a matrix or several that are dense, of
// whole bytes, or a matrix of blocks.
Tensor transposed(Tensor tensor);

}  // namespace poise
