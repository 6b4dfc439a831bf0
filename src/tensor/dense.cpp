#include "tensor/dense.hpp"

#include <algorithm>

#include "tensor/affine.hpp"
#include "tensor/group_quantize.hpp"
#include "tensor/sparse.hpp"

namespace poise {
namespace {

bool is_float_part(const Part& part) { return part.dtype == DType::f64 || can_widen(part.dtype); }

// The elements as they are, and their type.
BlobPtr elements_of(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) return make_decoded_blob(tensor);
  if (tensor.layout == Layout::quantized_group) return make_group_decoded_blob(tensor);
  return is_sparse(tensor) ? densify(tensor) : tensor.require("data").blob;
}

}  // namespace

bool has_float_elements(const Tensor& tensor) {
  switch (tensor.layout) {
    case Layout::affine: return true;
    case Layout::quantized_group: return std::ranges::none_of(tensor.parts, [](const Part& part) { return part.dtype == DType::unknown; });
    case Layout::sparse_csr:
    case Layout::sparse_coo: return is_float_part(tensor.require("values"));
    case Layout::dense: return is_float_part(tensor.require("data"));
    case Layout::other: break;
  }
  return false;
}

DType element_type(const Tensor& tensor) {
  if (tensor.layout == Layout::affine || tensor.layout == Layout::quantized_group) return DType::f32;
  return tensor.require(is_sparse(tensor) ? "values" : "data").dtype;
}

BlobPtr dense_blob(const Tensor& tensor, DType to, std::shared_ptr<CastReport> report) {
  return make_cast_blob(tensor.name, elements_of(tensor), element_type(tensor), to, std::move(report));
}

Tensor make_dense_tensor(const Tensor& tensor) {
  if (tensor.layout == Layout::dense) return tensor;
  return make_dense(tensor.name, tensor.shape, element_type(tensor), elements_of(tensor));
}

}  // namespace poise
