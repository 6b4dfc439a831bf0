#include "tensor/dense.hpp"

#include "tensor/affine.hpp"

namespace poise {

bool has_float_elements(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) return true;
  if (tensor.layout != Layout::dense) return false;
  const DType dtype = tensor.require("data").dtype;
  return dtype == DType::f64 || can_widen(dtype);
}

BlobPtr dense_blob(const Tensor& tensor, DType to, std::shared_ptr<CastReport> report) {
  if (tensor.layout == Layout::affine) return make_cast_blob(tensor.name, make_decoded_blob(tensor), DType::f32, to, std::move(report));
  const Part& data = tensor.require("data");
  return make_cast_blob(tensor.name, data.blob, data.dtype, to, std::move(report));
}

}  // namespace poise
