// dense: the elements of a tensor as one row-major run of one floating-point type, whatever its layout and type.
#pragma once

#include <string>

#include <poise/tensor.hpp>

#include "views/cast.hpp"

namespace poise {

// True for tensors whose elements are real floating-point numbers: those that dense_blob() takes.
bool has_float_elements(const Tensor& tensor);

// How the elements are stored: "f64", "sparse_csr", "layout zt.foo/1".
std::string storage_name(const Tensor& tensor);

// The same in the words of StoredType, where it has some: "bf16", "q4_k", "qint8", "qint4:range", "group4:128",
// "sparse_csr f16", "layout zt.foo/1".
std::string stored_type_name(const Tensor& tensor);

// The type that the elements have without a cast: of sparse tensors that of their values, f32 of codes and where
// values of sparse tensors take less than a byte. Requires: has_float_elements(tensor), or a dense or sparse tensor.
DType element_type(const Tensor& tensor);

// The same elements of element_type() as a dense tensor, computed when they are read. Sparse tensors may have elements
// of any type. Requires: the same.
Tensor make_dense_tensor(const Tensor& tensor);

// The elements, computed when they are read. `to` is f32, f16 or bf16. A LossyBlob<CastStats> where that is a cast.
// Reading throws unsupported, naming tensor and index, when a finite value overflows `to`.
// Requires: has_float_elements(tensor).
BlobPtr dense_blob(const Tensor& tensor, DType to);

// A sparse tensor with its values as `to`, as dense_blob() would have them. Requires: has_float_elements(tensor),
// is_sparse(tensor).
Tensor with_cast_values(Tensor tensor, DType to);

}  // namespace poise
