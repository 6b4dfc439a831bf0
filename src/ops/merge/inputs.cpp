#include "ops/merge/methods.hpp"

#include <utility>

#include "views/dense.hpp"

namespace poise {

MergeInputs::MergeInputs(std::vector<Tensor> tensors, const Tensor* base)
    : tensors_(std::move(tensors)),
      elements_(tensors_.front().elements()),
      row_elements_(tensors_.front().shape.empty() ? 1 : tensors_.front().shape.back()) {
  for (const Tensor& tensor : tensors_) numbers_.push_back(make_dense_blob(tensor, DType::f32));
  if (base != nullptr) {
    base_ = make_dense_blob(*base, DType::f32);
    tensors_.push_back(*base);
  }
  seekable_ = std::ranges::all_of(numbers_, [](const BlobPtr& blob) { return blob->seekable(); }) &&
              (base_ == nullptr || base_->seekable());
}

std::vector<Part> MergeInputs::parts() const {
  std::vector<Part> parts;
  for (const Tensor& tensor : tensors_) parts.insert(parts.end(), tensor.parts.begin(), tensor.parts.end());
  return parts;
}

void MergeInputs::read_base(std::uint64_t first, std::span<float> out) const {
  base_->read(first * sizeof(float), std::as_writable_bytes(out));
}

void MergeInputs::read(std::size_t i, std::uint64_t first, std::span<const float> base, std::span<float> out) const {
  numbers_[i]->read(first * sizeof(float), std::as_writable_bytes(out));
  for (std::size_t k = 0; k < base.size(); ++k) out[k] -= base[k];
}

}  // namespace poise
