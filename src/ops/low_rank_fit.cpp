#include "ops/low_rank_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include <Eigen/Core>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "io/threads.hpp"
#include "numeric/strip_kernels.hpp"
#include "ops/merge/methods.hpp"

namespace poise {
namespace {

using Columns = Eigen::MatrixXd;  // a column for each vector

constexpr std::size_t kBlockElements = 1 << 20;  // elements of a block; memory holds up to 2 blocks per thread + 1
constexpr std::size_t kMostRows = 256;           // rows of a block
constexpr std::size_t kPiece = 256;              // products in a float32 sum; these sums are added up as float64
constexpr std::uint64_t kMoreVectors = 8;        // vectors beyond the rank (oversampling), which improve the fit
constexpr std::uint64_t kSeed = 52;
constexpr int kMostExponent = std::numeric_limits<float>::max_exponent - 1;  // of float32's largest power of 2

// Holds a thin matrix in the form that add_strips() reads: cut into pieces of up to kPiece rows, each of the shape
// [strips, rows, kStrip].
class Pieces {
 public:
  explicit Pieces(const Columns& matrix)
      : rows_(static_cast<std::size_t>(matrix.rows())),
        strips_((static_cast<std::size_t>(matrix.cols()) + kStrip - 1) / kStrip),
        numbers_(rows_ * width()) {
    for (std::size_t begin = 0; begin < rows_; begin += kPiece) {
      const std::size_t length = count_rows(begin);
      float* const piece = numbers_.data() + begin * width();
      for (std::size_t column = 0; column < static_cast<std::size_t>(matrix.cols()); ++column) {
        for (std::size_t i = 0; i < length; ++i)
          piece[(column / kStrip * length + i) * kStrip + column % kStrip] =
              static_cast<float>(matrix(static_cast<Eigen::Index>(begin + i), static_cast<Eigen::Index>(column)));
      }
    }
  }

  std::size_t width() const { return strips_ * kStrip; }  // columns, filled up with zeros
  std::size_t strips() const { return strips_; }
  std::size_t count_rows(std::size_t begin) const { return std::min(kPiece, rows_ - begin); }
  const float* get_piece(std::size_t begin) const { return numbers_.data() + begin * width(); }

 private:
  std::size_t rows_;
  std::size_t strips_;
  std::vector<float> numbers_;
};

// Holds neighbouring rows of the matrix, and the results of a pass for them.
struct Block {
  std::uint64_t first = 0;
  std::size_t count = 0;
  std::vector<float> numbers;     // [count, columns]
  std::vector<float> products;    // [count, width]: `numbers` times the thin matrix
  std::vector<float> transposed;  // [columns, width]: the transposed `numbers` times `products`
};

class Fitting {
 public:
  Fitting(const ReadMatrix& matrix, std::uint64_t rank)
      : matrix_(matrix),
        columns_(static_cast<std::size_t>(matrix.columns)),
        block_rows_(std::clamp<std::size_t>(kBlockElements / columns_, 1, kMostRows)),
        scale_(std::ldexp(1.0, std::min(-std::ilogb(matrix.largest), kMostExponent))) {
    const std::uint64_t wanted = (rank + kMoreVectors + kStrip - 1) / kStrip * kStrip;
    vectors_ = static_cast<Eigen::Index>(std::min({wanted, matrix.rows, matrix.columns}));
  }

  LowRankFit fit(std::uint64_t rank) const {
    Columns right = make_random_signs();
    for (unsigned pass = 1; pass < kLowRankPasses; ++pass) right = make_orthonormal(multiply_twice(right));
    const Eigen::HouseholderQR<Columns> left(multiply(right));
    const Columns triangle = left.matrixQR().topRows(vectors_).triangularView<Eigen::Upper>();
    const Eigen::JacobiSVD<Columns, Eigen::NoQRPreconditioner> small(triangle,
                                                                     Eigen::ComputeFullU | Eigen::ComputeFullV);
    const auto kept = static_cast<Eigen::Index>(rank);
    const Eigen::VectorXd roots = (small.singularValues().head(kept) / scale_).cwiseSqrt();
    Columns turned = Columns::Zero(static_cast<Eigen::Index>(matrix_.rows), kept);
    turned.topRows(vectors_) = small.matrixU().leftCols(kept) * roots.asDiagonal();
    turned.applyOnTheLeft(left.householderQ());
    LowRankFit fit;
    fit.left = convert_to_rows(turned);
    fit.right = convert_to_rows(roots.asDiagonal() * small.matrixV().leftCols(kept).transpose() * right.transpose());
    const double squares = (small.singularValues().head(kept) / scale_).squaredNorm();
    fit.captured = std::min(1.0, squares / matrix_.sum_of_squares);
    return fit;
  }

 private:
  Columns make_random_signs() const {
    const std::uint64_t key = make_random_key(kSeed, 0, {});
    Columns random(static_cast<Eigen::Index>(columns_), vectors_);
    for (Eigen::Index i = 0; i < random.size(); ++i)
      random.data()[i] = make_random_number(key, static_cast<std::uint64_t>(i)) < 0.5 ? -1 : 1;
    return random;
  }

  static Columns make_orthonormal(const Columns& vectors) {
    const Eigen::HouseholderQR<Columns> factors(vectors);
    Columns result = Columns::Identity(vectors.rows(), vectors.cols());
    result.applyOnTheLeft(factors.householderQ());
    return result;
  }

  static std::vector<float> convert_to_rows(const Columns& matrix) {
    std::vector<float> rows(static_cast<std::size_t>(matrix.size()));
    Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        rows.data(), matrix.rows(), matrix.cols()) = matrix.cast<float>();
    return rows;
  }

  // Passes all rows in blocks to `make`, on all threads, and then in order to `use`.
  template <typename Make, typename Use>
  void process_blocks(const Make& make, const Use& use) const {
    std::uint64_t next = 0;
    process_in_order<Block>(
        [&](Block& block) {
          if (next == matrix_.rows) return false;
          block.first = next;
          block.count = static_cast<std::size_t>(std::min<std::uint64_t>(block_rows_, matrix_.rows - next));
          next += block.count;
          return true;
        },
        [&](Block& block) {
          block.numbers.resize(block.count * columns_);
          matrix_.read(block.first, block.numbers);
          for (float& number : block.numbers) number *= static_cast<float>(scale_);
          make(block);
        },
        [&](const Block& block) {
          use(block);
          if (matrix_.count) matrix_.count(block.numbers.size());
        });
  }

  // Returns scale * A * vectors, where A is the matrix.
  Columns multiply(const Columns& vectors) const {
    const Pieces pieces(vectors);
    Columns result(static_cast<Eigen::Index>(matrix_.rows), vectors.cols());
    process_blocks([&](Block& block) { multiply_rows(block, pieces); },
                   [&](const Block& block) {
                     for (std::size_t i = 0; i < block.count; ++i) {
                       for (Eigen::Index j = 0; j < result.cols(); ++j)
                         result(static_cast<Eigen::Index>(block.first + i), j) =
                             static_cast<double>(block.products[i * pieces.width() + static_cast<std::size_t>(j)]);
                     }
                   });
    return result;
  }

  // Returns scale^2 * (transposed A) * A * vectors, in one pass over the matrix A.
  Columns multiply_twice(const Columns& vectors) const {
    const Pieces pieces(vectors);
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> sums =
        Columns::Zero(vectors.rows(), vectors.cols());
    process_blocks(
        [&](Block& block) {
          multiply_rows(block, pieces);
          multiply_columns(block, pieces);
        },
        [&](const Block& block) {
          for (std::size_t i = 0; i < columns_; ++i) {
            for (Eigen::Index j = 0; j < sums.cols(); ++j)
              sums(static_cast<Eigen::Index>(i), j) +=
                  static_cast<double>(block.transposed[i * pieces.width() + static_cast<std::size_t>(j)]);
          }
        });
    return sums;
  }

  // Adds the products of one row or two with strips to `out`.
  static void add_rows(float* out, const float* weights, std::size_t stride, std::size_t rows, std::size_t length,
                       const float* strips, const Pieces& pieces) {
    const std::array<float*, 2> to = {out, out + pieces.width()};
    const std::array<const float*, 2> from = {weights, weights + (rows - 1) * stride};
    add_strips(to.data(), from.data(), rows, length, strips, pieces.strips());
  }

  void multiply_rows(Block& block, const Pieces& pieces) const {
    const std::size_t width = pieces.width();
    std::vector<double> sums(block.count * width);
    std::vector<float> part(2 * width);
    for (std::size_t begin = 0; begin < columns_; begin += kPiece) {
      for (std::size_t i = 0; i < block.count; i += 2) {
        const std::size_t rows = std::min<std::size_t>(2, block.count - i);
        std::ranges::fill(part, 0.0F);
        add_rows(part.data(), block.numbers.data() + i * columns_ + begin, columns_, rows, pieces.count_rows(begin),
                 pieces.get_piece(begin), pieces);
        for (std::size_t j = 0; j < rows * width; ++j) sums[i * width + j] += static_cast<double>(part[j]);
      }
    }
    block.products.assign(sums.begin(), sums.end());
  }

  void multiply_columns(Block& block, const Pieces& pieces) const {
    const std::size_t width = pieces.width();
    std::vector<float> strips(block.count * width);
    for (std::size_t i = 0; i < block.count; ++i) {
      for (std::size_t j = 0; j < width; ++j)
        strips[(j / kStrip * block.count + i) * kStrip + j % kStrip] = block.products[i * width + j];
    }
    constexpr std::size_t kColumns = 16;  // columns that are copied to rows together
    std::vector<float> turned(kColumns * block.count);
    block.transposed.assign(columns_ * width, 0.0F);
    for (std::size_t begin = 0; begin < columns_; begin += kColumns) {
      const std::size_t count = std::min(kColumns, columns_ - begin);
      for (std::size_t i = 0; i < block.count; ++i) {
        for (std::size_t j = 0; j < count; ++j) turned[j * block.count + i] = block.numbers[i * columns_ + begin + j];
      }
      for (std::size_t j = 0; j < count; j += 2)
        add_rows(block.transposed.data() + (begin + j) * width, turned.data() + j * block.count, block.count,
                 std::min<std::size_t>(2, count - j), block.count, strips.data(), pieces);
    }
  }

  const ReadMatrix& matrix_;
  std::size_t columns_;
  std::size_t block_rows_;
  // A power of two that scales the largest element to [1, 2), so that squares do not become 0. An element below 2^-127
  // stays below 1.
  double scale_;
  Eigen::Index vectors_ = 0;
};

}  // namespace

LowRankFit fit_low_rank(const ReadMatrix& matrix, std::uint64_t rank) { return Fitting(matrix, rank).fit(rank); }

}  // namespace poise
