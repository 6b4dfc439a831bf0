// The blobs of tensors in the order of writing; for Tensor and StoredTensor.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/blob.hpp>

namespace poise::ztensor {

template <class Tensors>
std::vector<BlobPtr> blobs_of(const Tensors& tensors) {
  std::vector<BlobPtr> blobs;
  for (const auto& tensor : tensors) {
    for (const auto& part : tensor.parts) blobs.push_back(part.blob);
  }
  return blobs;
}

inline std::uint64_t total_size(const std::vector<BlobPtr>& blobs) {
  std::uint64_t sum = 0;
  for (const BlobPtr& blob : blobs) sum += blob->size();
  return sum;
}

}  // namespace poise::ztensor
