// stored_form: how the kernels see a tensor that is a weight.
#pragma once

#include <string_view>

#include <poise/tensor.hpp>

#include "kernels/product.hpp"

namespace poise {

// The blobs hold the bytes that `rows` is to point at; scales and zeros are those of groups.
struct StoredForm {
  StoredRows rows;
  BlobPtr data;
  BlobPtr scales = nullptr;
  BlobPtr zeros = nullptr;
};

// What has no kernel of its own becomes float32, which takes memory. Throws unsupported, naming the tensor, for what
// has no floating-point elements; and what checking its parts throws.
StoredForm stored_form(const Tensor& tensor);

// Throws unsupported: the tensor cannot be used as a weight.
[[noreturn]] void refuse_weight(const Tensor& tensor, std::string_view reason);

}  // namespace poise
