#include "views/dense.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/stored_type.hpp>

#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "views/affine.hpp"
#include "views/blocks.hpp"
#include "views/group_quantize.hpp"
#include "views/mx.hpp"
#include "views/sparse.hpp"
#include "views/transposed.hpp"

namespace poise {
namespace {

bool is_float_part(const Part& part) { return is_floating(part.dtype); }

// Are its values floating-point numbers of less than a byte? densify() puts whole bytes between zeros, so these become
// float32 first.
bool has_narrow_values(const Tensor& tensor) {
  if (!is_sparse(tensor)) return false;
  const Part& values = tensor.require("values");
  return is_float_part(values) && info(values.dtype).bits < 8;
}

// The elements, of element_type().
BlobPtr elements_of(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) return make_decoded_blob(tensor);
  if (tensor.layout == Layout::quantized_group) return make_group_decoded_blob(tensor);
  if (is_mx(tensor)) return make_mx_decoded_blob(tensor);
  if (tensor.layout.blocks_along() == BlocksAlong::columns) {
    check_block_parts(tensor);
    return transposed(make_dense_tensor(transposed(tensor))).require("data").blob;
  }
  if (tensor.layout.blocks() != nullptr) return make_block_decoded_blob(tensor);
  if (!is_sparse(tensor)) return tensor.require("data").blob;
  return densify(has_narrow_values(tensor) ? with_cast_values(tensor, DType::f32) : tensor);
}

}  // namespace

bool has_float_elements(const Tensor& tensor) {
  switch (tensor.layout.kind()) {
    case Layout::affine: return true;
    case Layout::quantized_group: return tensor.layout.groups() != nullptr;
    case Layout::sparse_csr:
    case Layout::sparse_coo: return is_float_part(tensor.require("values"));
    case Layout::dense: return is_float_part(tensor.require("data"));
    case Layout::other: return is_mx(tensor) || has_decoded_blocks(tensor);
  }
  return false;
}

std::string storage_name(const Tensor& tensor) {
  if (const BlockType* blocks = tensor.layout.blocks()) return std::string(blocks->name);
  if (tensor.layout == Layout::other) return fmt::format("layout {}", tensor.layout.name());
  if (tensor.layout != Layout::dense) return std::string(tensor.layout.name());
  const Part& data = tensor.require("data");
  return data.dtype == DType::unknown ? fmt::format("type {}", data.type_name()) : std::string(to_string(data.dtype));
}

std::string stored_type_name(const Tensor& tensor) {
  if (const AffineSource* affine = tensor.layout.affine()) {
    return to_string(
        StoredType{tensor.require("data").dtype, affine->ranged() ? ScaleRule::range : ScaleRule::largest});
  }
  if (is_sparse(tensor)) return fmt::format("{} {}", to_string(tensor.layout), tensor.require("values").type_name());
  if (tensor.layout == Layout::quantized_group && has_float_elements(tensor)) {
    const GroupScheme& scheme = *tensor.layout.groups();
    return fmt::format("group{}:{}", scheme.bits, scheme.group_size);
  }
  return storage_name(tensor);
}

DType element_type(const Tensor& tensor) {
  const bool computed = tensor.layout == Layout::affine || tensor.layout == Layout::quantized_group || is_mx(tensor) ||
                        has_decoded_blocks(tensor);
  if (computed || has_narrow_values(tensor)) return DType::f32;
  return tensor.require(is_sparse(tensor) ? "values" : "data").dtype;
}

BlobPtr dense_blob(const Tensor& tensor, DType to) {
  return make_cast_blob(tensor.name, elements_of(tensor), element_type(tensor), tensor.elements(), to);
}

Tensor with_cast_values(Tensor tensor, DType to) {
  const auto values = std::ranges::find(tensor.parts, "values", &Part::role);
  values->blob = make_cast_blob(tensor.name, values->blob, values->dtype, stored_elements(tensor), to);
  values->dtype = to;
  values->spelling.reset();
  values->digest.reset();
  return tensor;
}

Tensor make_dense_tensor(const Tensor& tensor) {
  if (tensor.layout == Layout::dense) return tensor;
  return make_dense(tensor.name, tensor.shape, element_type(tensor), elements_of(tensor));
}

}  // namespace poise
