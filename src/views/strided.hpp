// Reads elements that are spread over a blob, as contiguous row-major little-endian elements. Declares functions that
// copy them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

// Describes where the elements of a tensor are in a blob.
struct Strided {
  Shape shape;
  // The distance in bytes from an element to the next along each dimension: negative for reversed order, and 0 for
  // repeated elements.
  std::vector<std::int64_t> strides;
  std::uint64_t offset = 0;  // the place of the element whose indices are all 0
  unsigned item_bytes = 0;   // the bytes of an element
  // The bytes of each big-endian number in an element, a divisor of item_bytes; 0: numbers are little-endian.
  unsigned swapped = 0;
};

// Each function returns the strides of contiguous elements. The last index changes fastest ("C order"), or the first
// one ("Fortran order"). Requires: the elements' bytes fit 63 bits.
std::vector<std::int64_t> compute_row_major_strides(const Shape& shape, unsigned item_bytes);
std::vector<std::int64_t> compute_column_major_strides(const Shape& shape, unsigned item_bytes);

// Returns the elements, contiguous: the blob itself, or a range of its file, if they are already. Takes constant
// memory, except for blobs that can only be read from front to back. For such a blob it keeps consecutive elements (a
// slab): as many bytes as compute_decoded_limit() allows, but at least 64 MiB; all bytes if stored() is empty. A slab
// may be larger, to save passes: all views together may use 512 MiB for this. Each slab takes a pass over the blob. If
// there are several slabs, the result can only be read from front to back, too. If the result is the transpose of the
// matrix that the whole blob is, it has stored_as(). Throws invalid_file (without path) for an element outside the
// blob, and when the elements take 2^64 bytes or more. Requires: as many strides as dimensions; item_bytes > 0.
BlobPtr make_strided_blob(BlobPtr blob, const Strided& layout);

// Transposes a matrix, or each matrix of a stack. Elements of a dense matrix move when they are read, unless the file
// stores the transposed matrix; blocks keep their bytes and lie in the other direction. Requires: a matrix or stack of
// dense elements of whole bytes, or a matrix of blocks.
Tensor transpose_view(Tensor tensor);

struct Dimension {
  std::uint64_t count;
  std::int64_t stride;  // in bytes of the source
};
using Dimensions = std::vector<Dimension>;

inline std::uint64_t get_magnitude(std::int64_t stride) {
  return stride < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
}

// Returns a position moved by some steps. Arithmetic is modulo 2^64, so negative strides work.
inline std::uint64_t move_position(std::uint64_t position, std::uint64_t steps, std::int64_t stride) {
  return position + steps * static_cast<std::uint64_t>(stride);
}
inline const std::byte* move_position(const std::byte* position, std::uint64_t steps, std::int64_t stride) {
  return position + static_cast<std::ptrdiff_t>(steps) * static_cast<std::ptrdiff_t>(stride);
}

// Names the range [begin, end) of bytes that holds the elements.
struct ElementRange {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t size() const { return end - begin; }
};

// Returns the range of bytes with the elements; std::nullopt if an end of it is below 0 or above 2^64 - 1. Requires: no
// count is 0.
std::optional<ElementRange> find_element_range(std::uint64_t first, std::span<const Dimension> dimensions,
                                               std::uint64_t item);

// Returns the fewest dimensions that have the same elements in the same order; none for a single element.
Dimensions merge_dimensions(const Strided& layout);

// Copies elements of `item` bytes, the first at `from`, to contiguous places at `to`. Requires: at least one dimension.
void copy_box(std::span<const Dimension> box, std::size_t item, const std::byte* from, std::byte* to);

// Copies a matrix that is stored column by column, or nearly. Rows of the copy are `to_stride` bytes apart. Requires:
// elements of 1, 2, 4, 8 or 16 bytes.
void copy_columns(const std::byte* from, const Dimension& rows, const Dimension& row, std::size_t item, std::byte* to,
                  std::size_t to_stride);

// Names elements of a blob, and the memory to which they are copied in row-major order.
struct PlacedBox {
  std::uint64_t position;  // the place of the first element in the blob
  Dimensions dimensions;
  std::byte* to;
};

// Copies the elements, of `item` bytes each. Reads the blob once, from its front to the last of these elements, so that
// it need only be readable from front to back. Takes constant memory. Throws what reading the blob throws. Requires:
// the elements are in the blob.
void gather_from_stream(const Blob& blob, std::span<const PlacedBox> boxes, std::size_t item);

}  // namespace poise
