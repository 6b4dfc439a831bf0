#include "ops/tensor_elements.hpp"

#include <poise/error.hpp>

#include "numeric/float_formats.hpp"
#include "numeric/summary_kernels.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"

namespace poise {

TensorElements::Kind TensorElements::find_kind(const Tensor& tensor) {
  if (has_float_elements(tensor)) return find_element_type(tensor) == DType::f64 ? Kind::doubles : Kind::floats;
  if (tensor.layout != Layout::dense) return Kind::none;
  const DType dtype = find_element_type(tensor);
  if (dtype == DType::unknown || !(is_integer(dtype) || dtype == DType::boolean)) return Kind::none;
  return is_small_integer(dtype) ? Kind::small_integers : Kind::integers;
}

TensorElements::TensorElements(const Tensor& tensor) : kind_(find_kind(tensor)), dtype_(find_element_type(tensor)) {
  blob_ = kind_ == Kind::floats ? make_dense_blob(tensor, DType::f32)
                                : make_dense_tensor(add_value_checks(tensor)).require("data").blob;
  const bool is_dense = tensor.layout == Layout::dense;
  if (is_dense && is_seekable() && (dtype_ == DType::f16 || dtype_ == DType::bf16))
    stored_ = tensor.require("data").blob->map().value_or(stored_);
  smallest_normal_ = find_smallest_normal(is_dense || kind_ == Kind::doubles ? dtype_ : DType::f32);
}

template <typename Number>
void TensorElements::read_as(BlobStream* stream, std::uint64_t first, std::span<Number> out,
                             std::vector<std::byte>& buffer) const {
  const bool is_direct = kind_ == Kind::floats || kind_ == Kind::doubles;
  const std::size_t bytes = kind_ == Kind::floats ? sizeof(float) : info(dtype_).bits / 8;
  if (!is_direct) buffer.resize(out.size() * bytes);
  const std::span<std::byte> to = is_direct ? std::as_writable_bytes(out) : std::span(buffer);
  if (stream == nullptr) {
    blob_->read(first * bytes, to);
  } else if (stream->read(to) != to.size()) {
    throw Error(ErrorKind::internal, "a stream ends before its blob");
  }
  if (!is_direct) convert_integers(dtype_, buffer.data(), out);
}

void TensorElements::read(BlobStream* stream, std::uint64_t first, std::span<float> out,
                          std::vector<std::byte>& buffer) const {
  read_as(stream, first, out, buffer);
}
void TensorElements::read(BlobStream* stream, std::uint64_t first, std::span<double> out,
                          std::vector<std::byte>& buffer) const {
  read_as(stream, first, out, buffer);
}

float TensorElements::decode(std::span<const std::byte> stored) const {
  float number = 0;
  widen(dtype_, stored.data(), std::span(&number, 1));
  return number;
}

}  // namespace poise
