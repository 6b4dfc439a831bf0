#include "views/low_rank.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "io/threads.hpp"
#include "numeric/strip_kernels.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

std::vector<float> transpose(const std::vector<float>& matrix, std::size_t rows, std::size_t columns) {
  std::vector<float> result(matrix.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
  }
  return result;
}

bool is_finite(float number) { return std::isfinite(number); }

// Holds both thin matrices, with the left one multiplied by the scale.
class Factors {
 public:
  explicit Factors(const LowRank& change) : rank_(static_cast<std::size_t>(change.right.shape[0])) {
    left_ = values(change.left);
    std::vector<float> right = values(change.right);
    if (change.transposed) {
      std::vector<float> first = transpose(right, rank_, static_cast<std::size_t>(change.right.shape[1]));
      right = transpose(left_, static_cast<std::size_t>(change.left.shape[0]), rank_);
      left_ = std::move(first);
    }
    columns_ = right.size() / rank_;
    mark_finite(right);
    for (float& number : left_) number *= change.scale;
    store_in_strips(right);
  }

  // Returns true if all numbers in the row of the left matrix and in the column of the right matrix are finite.
  bool has_finite_terms(std::size_t row, std::size_t column) const {
    return finite_rows_[row] && finite_columns_[column];
  }

  // Adds the product's elements from (row, column) on. Requires: the product has out.size() of them.
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
  // Adds columns [column, column + count) of the product's row to out[0] and, if out[1] is not null, those of the next
  // row to out[1].
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

  // Stores the right matrix in strips of kStrip columns. Requires: rank_ and columns_ are known.
  void store_in_strips(const std::vector<float>& right) {
    strips_.resize((columns_ + kStrip - 1) / kStrip * rank_ * kStrip);
    for (std::size_t k = 0; k < rank_; ++k) {
      for (std::size_t i = 0; i < columns_; ++i)
        strips_[(i / kStrip * rank_ + k) * kStrip + i % kStrip] = right[k * columns_ + i];
    }
  }

  void mark_finite(const std::vector<float>& right) {
    finite_rows_.resize(left_.size() / rank_);
    for (std::size_t row = 0; row < finite_rows_.size(); ++row)
      finite_rows_[row] = std::ranges::all_of(std::span(left_).subspan(row * rank_, rank_), is_finite);
    finite_columns_.assign(columns_, true);
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (!is_finite(right[i])) finite_columns_[i % columns_] = false;
    }
  }

  std::size_t rank_;
  std::size_t columns_ = 0;
  std::vector<bool> finite_rows_;  // true for rows of the left matrix that were finite before the scale was applied
  std::vector<bool> finite_columns_;
  std::vector<float> left_;    // [rows, rank]
  std::vector<float> strips_;  // strips of kStrip columns of the right matrix: [rank, kStrip] each; zeros fill the last
};

// Adds the change to float32 numbers, and checks sums of float32 or float64.
class LowRankSum {
 public:
  LowRankSum(const Tensor& matrix, LowRank change)
      : name_(matrix.name), change_(std::move(change)), columns_(matrix.shape.back()) {}

  // Adds the change to the elements from `first` on.
  void add(std::uint64_t first, std::span<float> out) const {
    load_factors()->add(static_cast<std::size_t>(first / columns_), static_cast<std::size_t>(first % columns_), out);
  }

  // Throws unsupported if a sum is not finite although its terms are. `own` has the matrix's elements from `first` on.
  template <typename Number>
  void check(std::uint64_t first, std::span<const Number> own, std::span<const Number> sums) const {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (std::isfinite(sums[i]) || !std::isfinite(own[i])) continue;
      const std::uint64_t element = first + i;
      if (!load_factors()->has_finite_terms(static_cast<std::size_t>(element / columns_),
                                            static_cast<std::size_t>(element % columns_)))
        continue;
      throw Error(
          ErrorKind::unsupported,
          fmt::format("tensor {}: element {} is not finite after the adapter's change, although the model's and "
                      "the adapter's numbers are: a smaller scale of the adapter keeps it finite",
                      name_, element));
    }
  }

  void release() const { kept_.release(); }

 private:
  std::shared_ptr<const Factors> load_factors() const {
    return kept_.get([this] { return std::make_shared<const Factors>(change_); });
  }

  std::string name_;
  LowRank change_;
  std::uint64_t columns_;
  LazyValue<const Factors> kept_;
};

class LowRankBlob final : public FloatBlob {
 public:
  LowRankBlob(const Tensor& matrix, LowRank change)
      : FloatBlob(matrix.elements()), matrix_(make_dense_blob(matrix, DType::f32)), sum_(matrix, std::move(change)) {}

  bool seekable() const override { return matrix_->seekable(); }

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override {
    matrix_->read(first * sizeof(float), std::as_writable_bytes(out));
    std::array<float, kBlockSize> numbers;
    const std::span<float> own = std::span(numbers).first(out.size());
    std::ranges::copy(out, own.begin());
    sum_.add(first, out);
    sum_.check<float>(first, own, out);
  }
  void drop_caches() const override { sum_.release(); }

 private:
  BlobPtr matrix_;
  LowRankSum sum_;
};

// Computes the sums for a float64 matrix; the products are float32.
class LowRankBlob64 final : public Blob {
 public:
  LowRankBlob64(const Tensor& matrix, LowRank change)
      : matrix_(matrix.require("data").blob), sum_(matrix, std::move(change)) {}

  std::uint64_t size() const override { return matrix_->size(); }
  bool seekable() const override { return matrix_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::array<double, kBlockSize> numbers;
    std::array<double, kBlockSize> sums;
    std::array<float, kBlockSize> products;
    const bool is_last = offset + out.size() == size();
    read_units(offset, out, sizeof(double), kBlockSize, [&](std::uint64_t first, std::size_t count) {
      matrix_->read(first * sizeof(double), std::as_writable_bytes(std::span(numbers).first(count)));
      std::fill_n(products.begin(), count, 0.0F);
      sum_.add(first, std::span(products).first(count));
      for (std::size_t i = 0; i < count; ++i) sums[i] = numbers[i] + static_cast<double>(products[i]);
      sum_.check<double>(first, std::span(numbers).first(count), std::span(sums).first(count));
      return std::as_bytes(std::span(sums).first(count));
    });
    if (is_last) sum_.release();
  }

 private:
  BlobPtr matrix_;
  LowRankSum sum_;
};

bool is_float64(const Tensor& matrix) {
  return matrix.layout == Layout::dense && find_element_type(matrix) == DType::f64;
}

}  // namespace

BlobPtr make_low_rank_blob(const Tensor& matrix, const LowRank& change) {
  if (is_float64(matrix)) return std::make_shared<LowRankBlob64>(matrix, change);
  return std::make_shared<LowRankBlob>(matrix, change);
}

}  // namespace poise
