// group_quantize: floating-point tensors as codes with a scale and a zero point per group, and groups as numbers again.
#pragma once

#include <optional>

#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>

namespace poise {

// The size that groups of a row get: `groups.size`, or the half of it, or the half of that, as long as it makes whole
// groups of whole words. Nothing when none does.
std::optional<std::uint64_t> group_size_for(const Groups& groups, std::uint64_t row);

// The same elements as zTensor 1.1's quantized_group, rounded to nearest: scale = (max - min) / largest code in
// float16, with min at most and max at least 0; zero = round(-min / scale). Nothing is computed now: a group's scale is
// found when its codes are first read, or in a pass of its own when the scales are read first, and kept (4 bytes a
// group) until the last of the zeros has been read. That throws unsupported, naming tensor and index, when an element
// is not finite, or too large for a float16 scale. Throws unsupported when no group size fits the rows. The codes are a
// LossyBlob<QuantizationError>.
// Requires: has_float_elements(tensor), rank >= 1.
Tensor quantize_groups(const Tensor& tensor, const Groups& groups);

// The elements of a group-quantized tensor as float32, computed when they are read. `index`: of each index along the
// axis its group, a u32; null: neighbours share a group.
// Reading throws what check_group_parts() throws, and invalid_file for a group that the tensor does not have.
// Requires: Layout::quantized_group with a scheme.
BlobPtr make_group_decoded_blob(const Tensor& tensor, BlobPtr index = nullptr);

}  // namespace poise
