// Measures how much a matrix loses as blocks of each type, on a sample of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "views/affine.hpp"

namespace poise {

struct TypeCandidate {
  std::optional<StoredType> type;  // std::nullopt: the matrix keeps its type
  std::uint64_t bytes = 0;         // of its elements
  double error = 0;                // the sum of (x - decoded)^2 over that of x^2, with weights of the columns
};

// Returns the types for the rows of a matrix that are smaller than `most_bytes`, with their errors. They are block
// types and, if the elements take more than 16 bits, f16 and bf16 (unless `holds_bf16` is false). Types whose numbers
// would not be finite are left out; so are all of them if an element is not finite. `importance`: as in
// quantize_to_blocks(). Throws what reading throws. Requires: has_float_elements(matrix), at least one dimension.
std::vector<TypeCandidate> measure_types(const Tensor& matrix, const Importance& importance, std::uint64_t most_bytes,
                                         bool holds_bf16);

// Returns the bytes of the largest sample, for progress.
std::uint64_t count_sample_bytes(const Tensor& matrix);

}  // namespace poise
