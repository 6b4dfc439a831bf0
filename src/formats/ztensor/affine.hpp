// Stores affine tensors (ALT's qint8 and qint4) in zTensor files, which have no such types.
//
// The object attribute "poise.affine" has the scale: {"bits": 8 or 4, "delta", "min", "max"}. Codes of a byte each are
// an ordinary dense tensor of i8 (symmetric) or u8 (a range), so every reader finds the codes in the tensor's shape.
// Codes packed two to a byte are u8 with the layout "poise.affine/1".
#pragma once

#include <poise/tensor.hpp>

namespace poise::ztensor {

inline constexpr std::string_view kAffineAttribute = "poise.affine";
inline constexpr std::string_view kAffineLayout = "poise.affine/1";

// Converts a tensor of Layout::affine to a dense one (or one of kAffineLayout) with the attribute. Reads its scale,
// which may take a pass over the data. Throws invalid_file (without path) for a scale that readers reject.
Tensor convert_to_stored_affine(const Tensor& tensor);

// Gives an affine tensor a scale whose encoding is as long as any. A plan uses it to bound the file's size, because
// finding the tensor's own scale may take a pass over the elements. Returns other tensors unchanged.
Tensor set_longest_scale(Tensor tensor);

// Converts a dense tensor with the attribute, or one of kAffineLayout, back to Layout::affine, and leaves other tensors
// unchanged. Throws invalid_file (without path) if the attribute, the type or the size does not fit.
void convert_from_stored_affine(Tensor& tensor);

}  // namespace poise::ztensor
