// Builds tensors for the rows of the table.
#pragma once

#include <functional>
#include <optional>

#include <poise/tensor.hpp>

#include "schemes/scheme.hpp"
#include "views/packed_codes.hpp"

namespace poise::schemes {

// The part with another role. `blob` empty: its own bytes.
Part as_part(std::string_view role, DType dtype, BlobPtr blob);
inline Part as_part(std::string_view role, const Part& part) { return as_part(role, part.dtype, BlobPtr(part.blob)); }

// The elements of a dense floating-point tensor as float32.
BlobPtr as_f32(const Tensor& tensor);

// A dense matrix, transposed. Requires: rank 2, elements of whole bytes.
BlobPtr transposed_data(const Tensor& matrix);

// Computes float32 numbers in blocks, from the index of the first.
using MakeNumbers = std::function<void(std::uint64_t first, std::span<float> out)>;
BlobPtr computed_f32(std::uint64_t elements, MakeNumbers make);

// The first element of a dense floating-point tensor, read now.
float scalar(const Tensor& tensor);

// The same number for each of `count` groups, as float16.
BlobPtr same_f16(float number, std::uint64_t count);

// Groups of neighbours along rows.
struct GroupParts {
  Shape shape;  // [rows, columns]
  unsigned bits = 0;
  std::uint64_t group_size = 0;
  BlobPtr codes;            // make_codes_blob() in `bits` bits
  Part scales;              // [rows, columns / group_size]
  Part zeros;               // the same
  BlobPtr index = nullptr;  // u32, for each column its group; null: groups of neighbours
};
// value = (code - zero) * scale. Throws what the layouts' checks throw.
Tensor group_tensor(const MatrixParts& matrix, GroupParts parts);

// Floating-point numbers with a scale (f32) for each block of [rows, columns] of them.
Tensor block_scaled_tensor(const Shape& shape, DType type, BlobPtr data, BlobPtr scales, std::uint64_t rows,
                           std::uint64_t columns);

// The u32 of each column's group, from the i32 tensor with that ending; null if it is missing, or neighbours share a
// group. Throws invalid_file (without path) for a missing group.
BlobPtr group_index(const MatrixParts& matrix, std::string_view ending, std::uint64_t columns,
                    std::uint64_t group_size);

// Signed codes of one byte as unsigned ones, with `zero` in the middle. Requires: a dense matrix of i8.
BlobPtr without_sign(const Tensor& codes);

// The bits in which groups store a code: 4 for 3, and 8 for 5 and 6.
unsigned stored_bits(unsigned bits);

}  // namespace poise::schemes
