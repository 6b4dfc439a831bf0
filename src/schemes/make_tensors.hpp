// What rows of the table make their tensors of.
#pragma once

#include <functional>
#include <optional>

#include <poise/tensor.hpp>

#include "schemes/scheme.hpp"
#include "views/packed_codes.hpp"

namespace poise::schemes {

// A part of another role. `blob` empty: the bytes that are there.
Part as_part(std::string_view role, DType dtype, BlobPtr blob);
inline Part as_part(std::string_view role, const Part& part) { return as_part(role, part.dtype, BlobPtr(part.blob)); }

// The elements of a dense floating-point tensor as float32.
BlobPtr as_f32(const Tensor& tensor);

// A dense matrix, transposed. Requires: rank 2, elements of whole bytes.
BlobPtr transposed_data(const Tensor& matrix);

// Float32 numbers that are computed, a block at a time, from the place of the first.
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
  BlobPtr index = nullptr;  // u32, of each column its group; null: groups of neighbours
};
// value = (code - zero) * scale. Throws what the layouts' checks throw.
Tensor group_tensor(const MatrixParts& matrix, GroupParts parts);

// Floating-point numbers with a scale (f32) for each block of [rows, columns] of them.
Tensor block_scaled_tensor(const Shape& shape, DType type, BlobPtr data, BlobPtr scales, std::uint64_t rows,
                           std::uint64_t columns);

// The u32 of each column that names its group, of the i32 tensor with that ending; null where there is none, or where
// neighbours share a group. Throws invalid_file (without path) for a group that is not there.
BlobPtr group_index(const MatrixParts& matrix, std::string_view ending, std::uint64_t columns,
                    std::uint64_t group_size);

// Codes of one byte that have a sign, with `zero` in the middle of those without. Requires: a dense matrix of i8.
BlobPtr without_sign(const Tensor& codes);

// The bits of a code in groups that hold codes of that many: 3 become 4, and 5 and 6 become 8.
unsigned stored_bits(unsigned bits);

}  // namespace poise::schemes
