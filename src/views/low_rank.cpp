#include "views/low_rank.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "io/lazy_value.hpp"
#include "io/read_fully.hpp"
#include "numeric/strip_kernels.hpp"
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
class Factors {
 public:
  explicit Factors(const LowRank& change) : rank_(static_cast<std::size_t>(change.right.shape[0])) {
    left_ = numbers_of(change.left);
    std::vector<float> right = numbers_of(change.right);
    if (change.transposed) {
      std::vector<float> first = transposed(right, rank_, static_cast<std::size_t>(change.right.shape[1]));
      right = transposed(left_, static_cast<std::size_t>(change.left.shape[0]), rank_);
      left_ = std::move(first);
    }
    for (float& number : left_) number *= change.scale;
    columns_ = right.size() / rank_;
    cut(right);
  }

  // Adds the product's elements from (row, column) on. Requires: there are so many.
  void add(std::size_t row, std::size_t column, std::span<float> out) const {
    while (!out.empty()) {
      const bool two = column == 0 && out.size() >= 2 * columns_;
      const std::size_t count = std::min(columns_ - column, out.size());
      add_to_rows(row, column, count, {out.data(), two ? out.data() + columns_ : nullptr});
      row += two ? 2 : 1;
      column = 0;
      out = out.subspan(two ? 2 * count : count);
    }
  }

 private:
  // Columns [column, column + count) of a row, and of the next one unless it is null.
  void add_to_rows(std::size_t row, std::size_t column, std::size_t count, std::array<float*, 2> out) const {
    const std::array<const float*, 2> weights = {left_.data() + row * rank_, left_.data() + (row + 1) * rank_};
    const std::size_t rows = out[1] == nullptr ? 1 : 2;
    while (count > 0) {
      const float* const strip = strips_.data() + column / kStrip * rank_ * kStrip;
      const std::size_t begin = column % kStrip;
      const std::size_t whole = begin == 0 ? count / kStrip : 0;
      std::size_t done = whole * kStrip;
      if (whole > 0) {
        add_strips(out.data(), weights.data(), rows, rank_, strip, whole);
      } else {
        done = std::min(kStrip - begin, count);
        for (std::size_t r = 0; r < rows; ++r) {
          std::array<float, kStrip> part = {};
          float* const to = part.data();
          std::copy_n(out[r], done, to + begin);
          add_strips(&to, &weights[r], 1, rank_, strip, 1);
          std::copy_n(to + begin, done, out[r]);
        }
      }
      column += done;
      count -= done;
      for (std::size_t r = 0; r < rows; ++r) out[r] += done;
    }
  }

  // Requires: rank_ and columns_ are known.
  void cut(const std::vector<float>& right) {
    strips_.resize((columns_ + kStrip - 1) / kStrip * rank_ * kStrip);
    for (std::size_t k = 0; k < rank_; ++k) {
      for (std::size_t i = 0; i < columns_; ++i)
        strips_[(i / kStrip * rank_ + k) * kStrip + i % kStrip] = right[k * columns_ + i];
    }
  }

  std::size_t rank_;
  std::size_t columns_ = 0;
  std::vector<float> left_;    // [rows, rank]
  std::vector<float> strips_;  // of the right one's columns: [rank, kStrip] each, the last filled up with zeros
};

class LowRankBlob final : public FloatBlob {
 public:
  LowRankBlob(const Tensor& matrix, LowRank change)
      : FloatBlob(matrix.elements()),
        matrix_(dense_blob(matrix, DType::f32)),
        change_(std::move(change)),
        columns_(matrix.shape.back()) {}

  bool seekable() const override { return matrix_->seekable(); }

 protected:
  void make(std::uint64_t first, std::span<float> out) const override {
    const auto factors = kept_.get([this] { return std::make_shared<const Factors>(change_); });
    matrix_->read(first * sizeof(float), std::as_writable_bytes(out));
    factors->add(static_cast<std::size_t>(first / columns_), static_cast<std::size_t>(first % columns_), out);
  }
  void finish() const override { kept_.release(); }

 private:
  BlobPtr matrix_;
  LowRank change_;
  std::uint64_t columns_;
  LazyValue<const Factors> kept_;
};

}  // namespace

BlobPtr make_low_rank_blob(const Tensor& matrix, const LowRank& change) {
  return std::make_shared<LowRankBlob>(matrix, change);
}

}  // namespace poise
