// Describes MX, the Microscaling formats of the Open Compute Project: each block of neighbours along an axis shares a
// power of two, and each element has 4 to 8 bits.
//
//   value = element * 2^(scale - 127)
//
// zTensor 2 stores them as `zt.mx/1`: the parts data (f4_e2m1, f8_e4m3, f8_e5m2, or i8 in units of 1/64) and scales
// (f8_e8m0, in the shape of the tensor, with the length of the axis divided by block_size).
#pragma once

#include <cstdint>
#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

inline constexpr std::string_view kMxLayout = "zt.mx/1";

struct MxScheme {
  std::size_t axis = 0;
  std::uint64_t block_size = 0;  // elements along the axis that share a scale

  friend bool operator==(const MxScheme&, const MxScheme&) = default;
};

// Returns the scheme of a layout; null for other layouts.
inline const MxScheme* get_mx_scheme(const TensorLayout& layout) { return layout.scheme<MxScheme>(); }
TensorLayout make_mx_layout(const MxScheme& scheme);
Attributes make_mx_attributes(const MxScheme& scheme);

// Reads the scheme from a tensor's attributes. Throws invalid_file (without path), which names tensor and attribute, if
// an attribute is invalid or does not fit the shape.
TensorLayout read_mx_layout(const Tensor& tensor);

// Throws invalid_file (without path) unless the parts are data and scales, of the right types and sizes. Accepts
// elements of a type that Poise does not know. Reads no data. Requires: get_mx_scheme(tensor.layout) is not null.
void check_mx_parts(const Tensor& tensor);

// Returns true for the attributes that read_mx_layout() reads.
bool is_mx_scheme_attribute(std::string_view attribute);

}  // namespace poise
