#include "views/low_rank.hpp"

#include <algorithm>
#include <array>
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

// Columns that one call sums up: as many sums as vector registers hold.
constexpr std::size_t kStrip = 32;

// out[i] += sum over k of weights[k] * strip[k * kStrip + i], in the order of k.
void add_strip(std::span<float, kStrip> out, std::span<const float> weights, const float* strip) {
  std::array<float, kStrip> sums;
  std::ranges::copy(out, sums.begin());
  for (const float weight : weights) {
    for (std::size_t i = 0; i < kStrip; ++i) sums[i] += weight * strip[i];
    strip += kStrip;
  }
  std::ranges::copy(sums, out.begin());
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
    cut(right);
  }

  // Adds the product's elements of a row, from `column` on. Requires: the row has that many.
  void add(std::size_t row, std::size_t column, std::span<float> out) const {
    const std::span<const float> weights = std::span(left_).subspan(row * rank_, rank_);
    while (!out.empty()) {
      const float* const strip = strips_.data() + column / kStrip * rank_ * kStrip;
      const std::size_t begin = column % kStrip;
      const std::size_t count = std::min(kStrip - begin, out.size());
      if (count == kStrip) {
        add_strip(out.first<kStrip>(), weights, strip);
      } else {
        std::array<float, kStrip> part = {};
        const auto first = part.begin() + static_cast<std::ptrdiff_t>(begin);
        std::copy_n(out.begin(), count, first);
        add_strip(part, weights, strip);
        std::copy_n(first, count, out.begin());
      }
      column += count;
      out = out.subspan(count);
    }
  }

 private:
  void cut(const std::vector<float>& right) {
    const std::size_t columns = right.size() / rank_;
    strips_.resize((columns + kStrip - 1) / kStrip * rank_ * kStrip);
    for (std::size_t k = 0; k < rank_; ++k) {
      for (std::size_t i = 0; i < columns; ++i)
        strips_[(i / kStrip * rank_ + k) * kStrip + i % kStrip] = right[k * columns + i];
    }
  }

  std::size_t rank_;
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
    while (!out.empty()) {
      const auto row = static_cast<std::size_t>(first / columns_);
      const auto column = static_cast<std::size_t>(first % columns_);
      const std::size_t count = std::min(out.size(), static_cast<std::size_t>(columns_) - column);
      factors->add(row, column, out.first(count));
      first += count;
      out = out.subspan(count);
    }
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
