// stored_form: a weight tensor in the form for kernels.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <poise/tensor.hpp>

#include "kernels/product.hpp"

namespace poise {

// The blobs hold the bytes for `rows`; scales and zeros are those of groups.
struct StoredForm {
  StoredRows rows;
  BlobPtr data;
  BlobPtr scales = nullptr;
  BlobPtr zeros = nullptr;
  BlobPtr table = nullptr;
  std::vector<std::uint32_t> row_groups = {};    // of by_column8 and by_column4
  std::vector<std::uint32_t> column_order = {};  // which column of the tensor each is; empty: in order
};

// All elements as float32, which takes memory.
StoredForm float_form(const Tensor& tensor);

// Types without kernels become float32. Throws unsupported, naming the tensor, without floating-point elements; and
// what checking its parts throws.
StoredForm stored_form(const Tensor& tensor);

// Throws unsupported: the tensor cannot be used as a weight.
[[noreturn]] void refuse_weight(const Tensor& tensor, std::string_view reason);

}  // namespace poise
