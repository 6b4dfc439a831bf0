#include "runtime/matrix.hpp"

#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/whole_blob.hpp"
#include "runtime/stored_form.hpp"
#include "tensor/block_layout.hpp"
#include "views/transposed.hpp"

namespace poise {
namespace {

class StoredMatrix final : public Matrix {
 public:
  StoredMatrix(std::size_t rows, std::size_t columns, Orientation orientation, const StoredForm& form)
      : Matrix(rows, orientation, form.rows), data_(form.data) {
    stored_.data = data_.bytes().data();
    stored_.columns = columns;
    if (!form.scales) return;
    stored_.scales = scales_.emplace(form.scales).bytes().data();
    if (form.zeros) stored_.zeros = zeros_.emplace(form.zeros).bytes().data();
  }

 private:
  WholeBlob data_;
  std::optional<WholeBlob> scales_;
  std::optional<WholeBlob> zeros_;
};

// Some rows of a matrix in memory. Requires: they begin at a whole byte.
class MatrixSlice final : public Matrix {
 public:
  MatrixSlice(std::shared_ptr<const Matrix> all, std::size_t first, std::size_t rows, Orientation orientation)
      : Matrix(rows, orientation, all->stored()), all_(std::move(all)) {
    const std::uint64_t elements = std::uint64_t{first} * stored_.columns;
    stored_.data += stored_bytes(stored_, elements);
    if (stored_.scales == nullptr) return;
    const std::uint64_t groups = elements / stored_.group_size;
    if (stored_.zeros == nullptr) {  // E8M0: a byte each
      stored_.scales += groups;
      return;
    }
    stored_.scales += groups * sizeof(std::uint16_t);
    stored_.zeros += groups * sizeof(std::uint16_t);
  }

 private:
  std::shared_ptr<const Matrix> all_;
};

std::unique_ptr<Matrix> load_rows(const Tensor& tensor, std::size_t rows, Orientation orientation) {
  const StoredForm form = stored_form(tensor);
  const std::uint64_t needed = stored_bytes(form.rows, tensor.elements());
  if (form.data->size() < needed)
    throw Error(ErrorKind::internal,
                fmt::format("tensor {}: {} bytes, needs {}", tensor.name, form.data->size(), needed));
  return std::make_unique<StoredMatrix>(rows, tensor.shape.back(), orientation, form);
}

}  // namespace

std::unique_ptr<Matrix> load_matrix(const Tensor& tensor, Orientation orientation) {
  if (tensor.shape.empty() || tensor.shape.size() > 2)
    refuse_weight(tensor, fmt::format("its shape is {}, expected a vector or a matrix", to_string(tensor.shape)));
  // True if columns make outputs and are stored as rows.
  const bool is_transposed = orientation == Orientation::in_out && tensor.shape.size() == 2 &&
                             blocks_along(tensor.layout) == BlocksAlong::columns;
  if (is_transposed) return load_rows(transposed(tensor), tensor.shape[1], Orientation::out_in);
  return load_rows(tensor, tensor.shape.size() == 2 ? tensor.shape[0] : 1, orientation);
}

std::vector<std::unique_ptr<Matrix>> load_matrices(const Tensor& tensor, Orientation orientation) {
  if (tensor.shape.size() != 3)
    refuse_weight(tensor, fmt::format("its shape is {}, expected several matrices", to_string(tensor.shape)));
  const std::size_t rows = tensor.shape[1];
  const std::shared_ptr<const Matrix> all = load_rows(tensor, tensor.shape[0] * rows, orientation);
  const bool half_bytes = all->stored().blocks == nullptr && stored_bytes(all->stored(), 2) < 2;
  if (half_bytes && rows * tensor.shape[2] % 2 != 0) refuse_weight(tensor, "its matrices do not begin at whole bytes");
  std::vector<std::unique_ptr<Matrix>> matrices;
  for (std::size_t i = 0; i < tensor.shape[0]; ++i)
    matrices.push_back(std::make_unique<MatrixSlice>(all, i * rows, rows, orientation));
  return matrices;
}

std::vector<float> load_vector(const Tensor& tensor) {
  const auto matrix = load_matrix(tensor);
  std::vector<float> values(matrix->rows() * matrix->columns());
  matrix->decode(0, matrix->rows(), values.data());
  return values;
}

}  // namespace poise
