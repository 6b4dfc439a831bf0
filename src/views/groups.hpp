// Makes and decodes tensors whose numbers share scales: in groups of codes, perhaps with zero points; in blocks with a
// codebook; in blocks of a matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

#include "tensor/group_scheme.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// Returns the group size for a row: `groups.size`, halved until the row is whole groups of whole words. Returns
// std::nullopt if no size fits.
std::optional<std::uint64_t> find_group_size(const Groups& groups, std::uint64_t row);

// Returns the same elements as zTensor 1.1's quantized_group, rounded to nearest: scale = (max - min) / largest code in
// float16, and zero = round(-min / scale). Here, min is at most 0, and max at least 0. Computed when read. The first
// read of a group's codes computes its scale; reading scales or zeros makes a pass for the missing scales. Scales and
// zero points stay in memory (4 bytes a group) until the last of the zeros has been read. Computing a scale throws
// unsupported, naming tensor and index, for an element that is not finite, or too large for a float16 scale. Throws
// unsupported if no group size fits the rows. `codes`, if not null, receives the blob of the codes. Requires:
// has_float_elements(tensor), rank >= 1.
Tensor quantize_groups(const Tensor& tensor, const Groups& groups, LossyBlobPtr<QuantizationError>* codes = nullptr);

// Returns the elements of a group-quantized tensor as float32, computed when read. `index` (u32) has the group of each
// position along the axis; null if the elements of a group are neighbours. Reading throws what check_group_parts()
// throws, and invalid_file for a group that the tensor does not have. Requires: Layout::quantized_group with a scheme.
BlobPtr make_group_decoded_blob(const Tensor& tensor, BlobPtr index = nullptr);

// Reads the index that make_group_decoded_blob() takes. Throws invalid_file for a group that the tensor does not have,
// with the place if it is known. Requires: `index` has a u32 for each position along the axis; group_size is not 0.
std::vector<std::uint32_t> read_group_index(const Tensor& tensor, const GroupScheme& scheme, const Blob& index);

// Names the layout of groups whose elements are not neighbours. indexed_groups.cpp describes the parts.
inline constexpr std::string_view kIndexedGroups = "poise.quant_group_indexed/1";

// Returns the layout that the tensor's attributes and parts describe. Throws invalid_file (without path) naming tensor
// and attribute when they are invalid.
TensorLayout make_indexed_groups_layout(const Tensor& tensor);

// Holds the numbers of an indexed tensor with its columns sorted by group, so that the columns of a group are
// neighbours.
struct SortedGroups {
  Tensor groups;                     // a tensor of layout zt.quant_group/1
  std::vector<std::uint32_t> order;  // the original column of each sorted column; empty: in order
};
// Reads the index and sorts the columns. Returns std::nullopt for groups along columns, and for tensors that are empty
// or not matrices, or whose codes, scales or zero points are packed so that columns cannot be reordered. Throws what
// check_content() throws.
std::optional<SortedGroups> sort_groups(const Tensor& tensor);

// Holds the numbers of an indexed tensor whose groups run along columns.
struct RowGroups {
  Tensor groups;                     // a tensor of layout zt.quant_group/1, without the index
  std::vector<std::uint32_t> index;  // the group of each row
};
// Reads the index. Returns std::nullopt for groups along rows, and for tensors that are not matrices. Throws what
// check_content() throws.
std::optional<RowGroups> read_row_groups(const Tensor& tensor);

inline constexpr std::string_view kCodebook = "poise.codebook/1";

// These functions return the layout for blocks of `block` elements, and the attributes that describe it. Requires:
// `block` is above 0.
TensorLayout make_codebook_layout(std::uint64_t block);
Attributes make_codebook_attributes(std::uint64_t block);
// Returns how many elements of the tensor share a scale. Requires: its layout is kCodebook.
std::uint64_t get_codebook_block(const Tensor& tensor);

// Throws invalid_file (without path) naming tensor and part if parts do not fit the shape. Requires: the tensor has
// this layout.
void check_codebook(const Tensor& tensor);

inline constexpr std::string_view kBlockScaled = "poise.block_scaled/1";

struct BlockShape {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

// These functions return the layout for blocks of this shape, and the attributes that describe it. Requires: neither
// number of the shape is 0.
TensorLayout make_block_scaled_layout(const BlockShape& shape);
Attributes make_block_scaled_attributes(const BlockShape& shape);
// Returns the shape of a block of the tensor. Requires: its layout is kBlockScaled.
const BlockShape& get_block_scaled_shape(const Tensor& tensor);

// Throws invalid_file (without path) naming tensor and part if parts do not fit the shape. Requires: the tensor has
// this layout.
void check_block_scaled(const Tensor& tensor);

}  // namespace poise
