#include "ops/budget/budget.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "codec/block_type.hpp"
#include "codec/quantize_kernels.hpp"
#include "io/read_fully.hpp"
#include "numeric/float_formats.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kSampleElements = 1 << 18;  // of a matrix; a smaller matrix is its own sample
constexpr std::uint64_t kMostColumns = 1 << 18;     // a sample has the beginning of a longer row, in whole blocks

// A budget chooses among these block types. The second list is for rows that are not whole blocks of 256 elements.
constexpr std::uint64_t kLargeBlock = 256;
constexpr std::array<std::string_view, 14> kTypes = {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "q2_k", "iq2_s", "iq3_xxs",
                                                     "q3_k",  "iq3_s", "iq4_xs",  "q4_k",   "q5_k", "q6_k",  "q8_0"};
constexpr std::array<std::string_view, 6> kTypesOfShortRows = {"q4_0", "iq4_nl", "q4_1", "q5_0", "q5_1", "q8_0"};

std::span<const std::string_view> list_types(std::uint64_t row_length) {
  if (row_length % kLargeBlock == 0) return kTypes;
  return kTypesOfShortRows;
}

// Describes which rows of a matrix a sample has, at equal distances, and how much of each row.
struct SampledRows {
  explicit SampledRows(const Tensor& matrix)
      : length(matrix.shape.back()),
        all(length == 0 ? 0 : matrix.elements() / length),
        columns(static_cast<std::size_t>(std::min(length, kMostColumns))),
        count(columns == 0
                  ? 0
                  : static_cast<std::size_t>(std::min(all, std::max<std::uint64_t>(1, kSampleElements / columns)))) {}

  // Returns the index in the matrix of the sample's i-th row.
  std::uint64_t find_row(std::size_t i) const {
    // all * i / count could overflow 64 bits.
    const std::uint64_t step = all / count;
    return step * i + all % count * i / count;
  }

  std::uint64_t length;  // elements of a row
  std::uint64_t all;     // rows that the matrix has
  std::size_t columns;   // elements of a row that the sample has
  std::size_t count;     // rows that the sample has
};

struct Sample {
  explicit Sample(const Tensor& matrix) : rows(matrix), numbers(rows.count * rows.columns) {
    const BlobPtr elements = make_dense_blob(matrix, DType::f32);
    is_beginning = !elements->seekable();
    if (is_beginning) {
      // A stream cannot skip rows cheaply, so the sample is its beginning: whole rows, or a part of the first one.
      read_fully(*elements->stream(), std::as_writable_bytes(std::span(numbers)));
      return;
    }
    for (std::size_t i = 0; i < rows.count; ++i) {
      const auto row = std::span(numbers).subspan(i * rows.columns, rows.columns);
      elements->read(rows.find_row(i) * rows.length * sizeof(float), std::as_writable_bytes(row));
    }
  }

  bool is_finite() const {
    return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
  }

  SampledRows rows;
  std::vector<float> numbers;
  bool is_beginning = false;  // it has the first rows
};

// Measures the loss of a sample, weighted by the importance of the columns.
class SampleLoss {
 public:
  // `importance` is null, or has weights for the columns: the same ones for all rows, or some for each stacked matrix.
  SampleLoss(const Sample& sample, const Importance& importance)
      : sample_(sample), rows_(sample.rows), importance_(importance) {
    if (importance_ != nullptr) matrices_ = std::max<std::uint64_t>(1, importance_->size() / rows_.length);
  }

  // Returns the weights of a row of the sample; null if there are none.
  const float* find_weights(std::size_t i) const {
    if (importance_ == nullptr) return nullptr;
    const std::uint64_t row = sample_.is_beginning ? i : rows_.find_row(i);
    const std::uint64_t matrix = row / std::max<std::uint64_t>(1, rows_.all / matrices_);
    return importance_->data() + std::min(matrix, matrices_ - 1) * rows_.length;
  }

  // Returns the relative squared error; std::nullopt if a decoded number is not finite. decode(i, row, out) encodes
  // `row`, which is row i of the sample, and decodes the result to `out`.
  template <typename Decode>
  std::optional<double> measure(const Decode& decode) const {
    QuantizationError error;
    std::vector<float> decoded(rows_.columns);
    std::vector<float> numbers(rows_.columns);
    for (std::size_t i = 0; i < rows_.count; ++i) {
      const std::span<const float> row = std::span(sample_.numbers).subspan(i * rows_.columns, rows_.columns);
      decode(i, row, std::span(decoded));
      std::ranges::copy(row, numbers.begin());
      if (const float* const weights = find_weights(i); weights != nullptr) {
        for (std::size_t column = 0; column < row.size(); ++column) {
          const float root = std::sqrt(weights[column]);
          numbers[column] *= root;
          decoded[column] *= root;
        }
      }
      error.merge(measure_loss(numbers.data(), decoded.data(), row.size()));
    }
    if (!std::isfinite(error.squared_error)) return std::nullopt;
    return error.squared_values > 0 ? error.squared_error / error.squared_values : 0.0;
  }

 private:
  const Sample& sample_;
  const SampledRows& rows_;
  const Importance& importance_;
  std::uint64_t matrices_ = 1;
};

}  // namespace

std::uint64_t count_sample_bytes(const Tensor& matrix) {
  const SampledRows rows(matrix);
  return rows.count * rows.columns * sizeof(float);
}

std::vector<TypeCandidate> measure_types(const Tensor& matrix, const Importance& importance, std::uint64_t most_bytes,
                                         bool holds_bf16, bool has_importance) {
  std::vector<TypeCandidate> candidates;
  const Sample sample(matrix);
  const SampledRows& rows = sample.rows;
  if (rows.count == 0 || !sample.is_finite()) return candidates;
  const std::uint64_t elements = matrix.elements();
  const SampleLoss loss(sample, importance);
  std::vector<std::byte> blocks;
  for (const std::string_view name : list_types(rows.length)) {
    const BlockType& type = *find_named_block_type(name);
    const std::uint64_t bytes = elements / type.elements * type.bytes;
    if (rows.length % type.elements != 0 || bytes >= most_bytes || (type.needs_importance && !has_importance)) continue;
    blocks.resize(rows.columns / type.elements * type.bytes);
    const auto error = loss.measure([&](std::size_t i, std::span<const float> row, std::span<float> out) {
      type.encode({row.data(), 1, row.size(), loss.find_weights(i)}, blocks.data());
      type.decode(blocks.data(), row.size() / type.elements, out.data());
    });
    if (error) candidates.push_back({StoredType{.dtype = DType::u8, .blocks = type.name}, bytes, *error});
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const std::uint64_t bytes = elements * 2;
    if (bytes >= most_bytes || (dtype == DType::bf16 && !holds_bf16)) continue;
    const auto error = loss.measure([&](std::size_t, std::span<const float> row, std::span<float> out) {
      std::ranges::transform(row, out.begin(), [dtype](float number) {
        return decode_float(dtype, dtype == DType::f16 ? encode_f16(number) : encode_bf16(number));
      });
    });
    if (error) candidates.push_back({StoredType{dtype}, bytes, *error});
  }
  return candidates;
}

}  // namespace poise
