// Assembles a tensor from boxes. A box holds the elements of a range along every dimension, as a rank saved it in a
// distributed checkpoint.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

// Holds row-major elements [offsets, offsets + sizes) of a tensor.
struct Box {
  Shape offsets;
  Shape sizes;
  BlobPtr elements;
};

// Returns the row-major elements of the whole tensor. Elements are copied when they are read; if one box is the whole
// tensor, its blob is returned as it is. Throws invalid_file (without path) for boxes that lie outside the shape,
// overlap or leave elements out, and for blobs of another size; unsupported for boxes that do not form a grid: their
// edges divide the tensor into more than 64 cells for each box. Requires: item_bytes > 0; the tensor's bytes fit 63
// bits.
BlobPtr make_box_blob(const Shape& shape, std::vector<Box> boxes, unsigned item_bytes);

}  // namespace poise
