// Reads a tensor of any layout as a row-major array of numbers. They are decoded and cast in chunks when they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <poise/tensor.hpp>

#include "numeric/cast_kernels.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// Reads `out.size()` elements as float32, from element `first` on; `in` points to element 0. If a byte has two
// elements, the one with the even index is in the low half. Requires: a floating dtype. `in` needs no alignment.
void widen(DType dtype, const std::byte* in, std::span<float> out, std::uint64_t first = 0);

// Returns true for types whose numbers all fit float32: the floating types except f64.
bool can_widen(DType dtype);

// Returns the first `elements` elements of `data`, cast from `from` to `to` (f32, f16 or bf16) when they are read;
// `data` itself if both types are equal. Reading throws unsupported, naming the tensor `name` and the index, when a
// finite value overflows `to`. If there is a cast and `cast` is not null, `*cast` receives the blob. Requires: `from`
// is a floating type; `data` has at least `elements` elements.
BlobPtr make_cast_blob(std::string name, BlobPtr data, DType from, std::uint64_t elements, DType to,
                       LossyBlobPtr<CastStats>* cast = nullptr);

// Returns true for tensors of real floating-point numbers: those that make_dense_blob() accepts.
bool has_float_elements(const Tensor& tensor);

// Returns how elements are stored, for messages: "f64", "sparse_csr", "layout zt.foo/1".
std::string describe_storage(const Tensor& tensor);

// Returns how elements are stored, in the notation of StoredType if that can state it: "bf16", "q4_k", "qint8",
// "qint4:range", "group4:128", "sparse_csr f16", "layout zt.foo/1".
std::string describe_stored_type(const Tensor& tensor);

// Returns the type of the elements without a cast: that of dense elements or sparse values, f32 for codes and for
// sparse values of less than a byte. Requires: has_float_elements(tensor), or a dense or sparse tensor.
DType find_element_type(const Tensor& tensor);

// Returns the same elements as a dense tensor of find_element_type(), computed when read. Sparse tensors may have
// elements of any type. Requires: what find_element_type() requires.
Tensor make_dense_tensor(const Tensor& tensor);

// Returns the elements as `to`: f32, f16 or bf16, computed when read. Reading throws unsupported, naming tensor and
// index, when a finite value overflows `to`. `cast`, if not null, receives the same blob if it is a cast. Requires:
// has_float_elements(tensor).
BlobPtr make_dense_blob(const Tensor& tensor, DType to, LossyBlobPtr<CastStats>* cast = nullptr);

// Returns a sparse tensor with its values cast to `to`, as make_dense_blob() does. Requires:
// has_float_elements(tensor), is_sparse(tensor).
Tensor cast_values(Tensor tensor, DType to, LossyBlobPtr<CastStats>* cast = nullptr);

// Throws unsupported if a number of a quantized tensor with floating-point parts is infinite although no number of its
// parts is. Reads the parts whose type has numbers above 1e12, and decodes the tensor only if a part has such a number.
void require_finite_numbers(const Tensor& tensor);

}  // namespace poise
