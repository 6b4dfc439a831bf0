#include "views/low_rank.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "io/lazy_value.hpp"
#include "io/read_fully.hpp"
#include "views/dense.hpp"
#include "views/float_blob.hpp"

namespace poise {
namespace {

std::vector<float> numbers_of(const Tensor& tensor) {
  std::vector<float> numbers(static_cast<std::size_t>(tensor.elements()));
  read_fully(*dense_blob(tensor, DType::f32)->stream(), std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

std::vector<float> transposed(const std::vector<float>& matrix, std::size_t rows, std::size_t columns) {
  std::vector<float> result(matrix.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
  }
  return result;
}

// Both thin matrices, the left one with the scale.
struct Factors {
  explicit Factors(const LowRank& change) {
    left = numbers_of(change.left);
    right = numbers_of(change.right);
    const auto rank = static_cast<std::size_t>(change.right.shape[0]);
    if (change.transposed) {
      std::vector<float> first = transposed(right, rank, static_cast<std::size_t>(change.right.shape[1]));
      right = transposed(left, static_cast<std::size_t>(change.left.shape[0]), rank);
      left = std::move(first);
    }
    for (float& number : left) number *= change.scale;
  }
  std::vector<float> left;   // [rows, rank]
  std::vector<float> right;  // [rank, columns]
};

class LowRankBlob final : public FloatBlob {
 public:
  LowRankBlob(const Tensor& matrix, LowRank change)
      : FloatBlob(matrix.elements()),
        matrix_(dense_blob(matrix, DType::f32)),
        change_(std::move(change)),
        rank_(static_cast<std::size_t>(change_.right.shape[0])),
        columns_(matrix.shape.back()) {}

  bool seekable() const override { return matrix_->seekable(); }

 protected:
  void make(std::uint64_t first, std::span<float> out) const override {
    const auto factors = kept_.get([this] { return std::make_shared<const Factors>(change_); });
    matrix_->read(first * sizeof(float), std::as_writable_bytes(out));
    while (!out.empty()) {
      const auto row = static_cast<std::size_t>(first / columns_);
      const auto column = static_cast<std::size_t>(first % columns_);
      const std::size_t count = std::min(out.size(), static_cast<std::size_t>(columns_) - column);
      for (std::size_t k = 0; k < rank_; ++k) {
        const float weight = factors->left[row * rank_ + k];
        const float* const line = factors->right.data() + k * static_cast<std::size_t>(columns_) + column;
        for (std::size_t i = 0; i < count; ++i) out[i] += weight * line[i];
      }
      first += count;
      out = out.subspan(count);
    }
  }
  void finish() const override { kept_.release(); }

 private:
  BlobPtr matrix_;
  LowRank change_;
  std::size_t rank_;
  std::uint64_t columns_;
  LazyValue<const Factors> kept_;
};

}  // namespace

BlobPtr make_low_rank_blob(const Tensor& matrix, const LowRank& change) {
  return std::make_shared<LowRankBlob>(matrix, change);
}

}  // namespace poise
