#include "runtime/matrix.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "codec/block_type.hpp"
#include "io/read_fully.hpp"
#include "tensor/block_layout.hpp"
#include "views/row_order.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

class StoredMatrix final : public Matrix {
 public:
  StoredMatrix(const std::string& name, std::size_t rows, std::size_t columns, Orientation orientation,
               const StoredForm& form, std::size_t paired_rows)
      : Matrix({name}, rows, orientation, form.rows, paired_rows, form.column_order),
        data_(form.data),
        row_groups_(form.row_groups) {
    stored_.data = data_.bytes().data();
    stored_.columns = columns;
    stored_.row_groups = row_groups_.data();
    if (form.table) stored_.table = table_.emplace(form.table).bytes().data();
    if (!form.scales) return;
    stored_.scales = scales_.emplace(form.scales).bytes().data();
    if (form.zeros) stored_.zeros = zeros_.emplace(form.zeros).bytes().data();
  }

 private:
  WholeBlob data_;
  std::optional<WholeBlob> scales_;
  std::optional<WholeBlob> zeros_;
  std::optional<WholeBlob> table_;
  std::vector<std::uint32_t> row_groups_;
};

// Refers to some rows of a matrix in memory. Requires: they begin at a whole byte.
class MatrixSlice final : public Matrix {
 public:
  MatrixSlice(std::shared_ptr<const Matrix> all, Origin origin, std::size_t first, std::size_t rows,
              Orientation orientation)
      : Matrix(std::move(origin), rows, orientation, all->stored()), all_(std::move(all)) {
    const std::uint64_t elements = std::uint64_t{first} * stored_.columns;
    stored_.data += count_element_bytes(stored_, elements);
    if (stored_.scales == nullptr) return;
    const std::size_t of_row = (stored_.columns + stored_.group_size - 1) / stored_.group_size;
    const std::size_t before = first / stored_.scale_rows * of_row * measure_scale(stored_);
    stored_.scales += before;
    if (stored_.zeros != nullptr) stored_.zeros += before;
  }

 private:
  std::shared_ptr<const Matrix> all_;
};

// Reads the same range of bytes from each of some consecutive rows, and joins them without gaps.
class RowParts final : public Blob {
 public:
  // `first` is the byte offset of the first row's part.
  RowParts(BlobPtr blob, std::uint64_t first, std::uint64_t row_bytes, std::uint64_t part_bytes, std::size_t rows)
      : blob_(std::move(blob)), first_(first), row_bytes_(row_bytes), part_bytes_(part_bytes), rows_(rows) {}

  std::uint64_t size() const override { return rows_ * part_bytes_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t skipped = offset % part_bytes_;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), part_bytes_ - skipped));
      blob_->read(first_ + offset / part_bytes_ * row_bytes_ + skipped, out.first(count));
      out = out.subspan(count);
      offset += count;
    }
  }

 private:
  BlobPtr blob_;
  std::uint64_t first_;
  std::uint64_t row_bytes_;
  std::uint64_t part_bytes_;
  std::size_t rows_;
};

// Names rows and columns of a stored matrix.
struct Box {
  IndexRange rows;
  IndexRange columns;
};

// Returns true if a part of that side has some of the stored rows, and false if it has some of the columns.
bool divides_rows(MatrixShare::Side side, Orientation orientation) {
  return (side == MatrixShare::Side::outputs) == (orientation == Orientation::out_in);
}

// Returns the rows and columns of a part of a matrix [rows, columns].
Box find_box(const MatrixShare& part, Orientation orientation, std::size_t rows, std::size_t columns) {
  if (part.side == MatrixShare::Side::all) return {{0, rows}, {0, columns}};
  return divides_rows(part.side, orientation) ? Box{part.range, {0, columns}} : Box{{0, rows}, part.range};
}

bool has_half_bytes(const StoredRows& rows) { return rows.blocks == nullptr && count_element_bytes(rows, 2) < 2; }

// Returns true if the scales are float32. A group may then be a whole row.
bool has_float_scales(const StoredRows& rows) { return measure_scale(rows) == sizeof(float); }

// Returns a step: columns may be cut only at multiples of it.
std::size_t find_column_step(const StoredRows& rows, std::size_t columns) {
  if (rows.blocks != nullptr) return rows.blocks->elements;
  constexpr std::size_t kScaledColumns = 16;  // columns that kernels multiply at a time
  if (rows.group_size == 0) return has_half_bytes(rows) ? 2 : 1;
  return has_float_scales(rows) && rows.group_size >= columns ? kScaledColumns : rows.group_size;
}

// Returns a step: rows may be cut only at multiples of it.
std::size_t find_row_step(const StoredRows& rows, std::size_t count) {
  return rows.scale_rows < count ? rows.scale_rows : 1;
}

// Returns true if the box can be cut out of the form without decoding.
bool can_cut_form(const StoredForm& form, std::size_t rows, std::size_t columns, const Box& box) {
  if (!form.row_groups.empty() || (has_half_bytes(form.rows) && columns % 2 != 0)) return false;
  const auto is_at_step = [](const IndexRange& range, std::size_t step, std::size_t end) {
    return range.first % step == 0 && (range.last % step == 0 || range.last == end);
  };
  return is_at_step(box.rows, find_row_step(form.rows, rows), rows) &&
         is_at_step(box.columns, find_column_step(form.rows, columns), columns);
}

// Cuts rows and columns out of a form with `columns` columns. Requires: can_cut_form().
StoredForm cut_form(const Tensor& tensor, const StoredForm& form, std::size_t columns, const Box& box) {
  const auto cut_blob = [&](const BlobPtr& blob, const IndexRange& rows, const auto& count_bytes) -> BlobPtr {
    const std::uint64_t row_bytes = count_bytes(columns);
    const std::uint64_t before = count_bytes(box.columns.first);
    const std::uint64_t part_bytes = count_bytes(box.columns.last) - before;
    const std::uint64_t first = rows.first * row_bytes + before;
    if (part_bytes != row_bytes && blob->seekable())
      return std::make_shared<RowParts>(blob, first, row_bytes, part_bytes, rows.size());
    if (part_bytes > UINT32_MAX)
      refuse_weight(tensor, fmt::format("a row has {} bytes, at most {} are supported", part_bytes, UINT32_MAX));
    return make_strided_blob(blob, {.shape = {rows.size()},
                                    .strides = {static_cast<std::int64_t>(row_bytes)},
                                    .offset = first,
                                    .item_bytes = static_cast<unsigned>(part_bytes)});
  };
  const auto count_data_bytes = [&](std::uint64_t elements) { return count_element_bytes(form.rows, elements); };
  const auto count_scale_bytes = [&](std::uint64_t elements) {
    return (elements + form.rows.group_size - 1) / form.rows.group_size * measure_scale(form.rows);
  };
  const IndexRange scale_rows = {box.rows.first / form.rows.scale_rows,
                                 (box.rows.last + form.rows.scale_rows - 1) / form.rows.scale_rows};
  StoredForm part = {.rows = form.rows,
                     .data = cut_blob(form.data, box.rows, count_data_bytes),
                     .table = form.table,
                     .column_order = form.column_order};
  if (part.rows.group_size != 0) part.rows.group_size = std::min(part.rows.group_size, box.columns.size());
  if (form.scales) part.scales = cut_blob(form.scales, scale_rows, count_scale_bytes);
  if (form.zeros) part.zeros = cut_blob(form.zeros, scale_rows, count_scale_bytes);
  return part;
}

// Represents a part without rows or without columns: an empty share of a rank. It has no bytes.
class EmptyMatrix final : public Matrix {
 public:
  EmptyMatrix(const std::string& name, const Box& box, Orientation orientation)
      : Matrix({name}, box.rows.size(), orientation, {}) {
    stored_.columns = box.columns.size();
  }
};

// Borrows rows that are stored in pairs (a row of the first half of a head, then one of the second), instead of copying
// them in halves. Returns the number of rows in a head, or 0 if they cannot be borrowed.
std::size_t borrow_paired_rows(StoredForm& form, std::size_t rows) {
  const StoredAs* const stored = find_change(*form.data, StoredAs::Change::rows_interleaved);
  if (stored == nullptr || form.scales != nullptr || stored->row_bytes * rows != form.data->size() ||
      !stored->blob->map())
    return 0;
  const auto head_rows = static_cast<std::size_t>(stored->head_rows);
  form.data = BlobPtr(stored->blob);
  return head_rows;
}

// Loads a box of a tensor, which is seen as a matrix [rows, length of the last axis].
std::unique_ptr<Matrix> load_box(const Tensor& tensor, std::size_t rows, const Box& box, Orientation orientation) {
  const std::size_t columns = tensor.shape.back();
  if (box.rows.size() == 0 || box.columns.size() == 0)
    return std::make_unique<EmptyMatrix>(tensor.name, box, orientation);
  StoredForm form = make_stored_form(tensor);
  // Products reorder x to the order of the stored columns. So the columns must be inputs, and none may be missing.
  if (!form.column_order.empty() && (orientation == Orientation::in_out || box.columns.size() != columns))
    form = make_float_form(tensor);
  const std::uint64_t needed = count_element_bytes(form.rows, tensor.elements());
  if (form.data->size() < needed)
    throw Error(ErrorKind::internal,
                fmt::format("tensor {}: expected {} bytes, found {}", tensor.name, needed, form.data->size()));
  std::size_t paired_rows = 0;
  if (box.rows.size() != rows || box.columns.size() != columns) {
    if (!can_cut_form(form, rows, columns, box)) form = make_float_form(tensor);
    form = cut_form(tensor, form, columns, box);
  } else if (tensor.shape.size() == 2 && orientation == Orientation::out_in) {
    paired_rows = borrow_paired_rows(form, rows);
  }
  return std::make_unique<StoredMatrix>(tensor.name, box.rows.size(), box.columns.size(), orientation, form,
                                        paired_rows);
}

// Returns true if the matrix is to be read as [in, out], but the file stores its columns as rows.
bool is_transposed(const Tensor& tensor, Orientation orientation) {
  if (orientation != Orientation::in_out || tensor.shape.size() != 2) return false;
  if (tensor.layout != Layout::dense) return get_block_direction(tensor.layout) == BlocksAlong::columns;
  const Blob& data = *tensor.require("data").blob;
  const StoredAs* const stored = find_change(data, StoredAs::Change::transposed);
  return stored != nullptr && stored->row_bytes * tensor.shape[1] == data.size();
}

}  // namespace

void Matrix::decode(std::size_t first, std::size_t count, float* out) const {
  if (!column_order_.empty()) {
    std::vector<float> row(columns());
    for (std::size_t i = 0; i < count; ++i, out += row.size()) {
      decode_rows(stored_, first + i, 1, row.data());
      for (std::size_t c = 0; c < row.size(); ++c) out[column_order_[c]] = row[c];
    }
    return;
  }
  if (paired_rows_ == 0) return decode_rows(stored_, first, count, out);
  for (std::size_t i = 0; i < count; ++i)
    decode_rows(stored_, find_row_in_pairs(first + i, paired_rows_), 1, out + i * columns());
}

std::unique_ptr<Matrix> load_matrix(const Tensor& tensor, Orientation orientation, const MatrixShare& part) {
  if (tensor.shape.empty() || tensor.shape.size() > 2)
    refuse_weight(tensor, fmt::format("its shape is {}, expected a vector or a matrix", to_string(tensor.shape)));
  if (is_transposed(tensor, orientation)) return load_matrix(transpose_view(tensor), Orientation::out_in, part);
  const std::size_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  return load_box(tensor, rows, find_box(part, orientation, rows, tensor.shape.back()), orientation);
}

std::vector<std::unique_ptr<Matrix>> load_matrices(const Tensor& tensor, Orientation orientation,
                                                   const std::optional<IndexRange>& which) {
  if (tensor.shape.size() != 3)
    refuse_weight(tensor, fmt::format("its shape is {}, expected several matrices", to_string(tensor.shape)));
  const std::size_t count = tensor.shape[0];
  const std::size_t rows = tensor.shape[1];
  const std::size_t columns = tensor.shape[2];
  const IndexRange some = which.value_or(IndexRange{0, count});
  const std::shared_ptr<const Matrix> all =
      load_box(tensor, count * rows, {{some.first * rows, some.last * rows}, {0, columns}}, orientation);
  if (has_half_bytes(all->stored()) && rows * columns % 2 != 0)
    refuse_weight(tensor, "its matrices do not begin at whole bytes");
  std::vector<std::unique_ptr<Matrix>> matrices;
  for (std::size_t i = 0; i < some.size(); ++i)
    matrices.push_back(
        std::make_unique<MatrixSlice>(all, Matrix::Origin{tensor.name, some.first + i}, i * rows, rows, orientation));
  return matrices;
}

std::size_t find_share_step(const Tensor& tensor, Orientation orientation, MatrixShare::Side side) {
  if (is_transposed(tensor, orientation)) return find_share_step(transpose_view(tensor), Orientation::out_in, side);
  const StoredForm form = make_stored_form(tensor);
  if (!form.row_groups.empty()) return 1;
  if (divides_rows(side, orientation)) return find_row_step(form.rows, tensor.shape.front());
  return form.column_order.empty() ? find_column_step(form.rows, tensor.shape.back()) : 1;
}

std::vector<float> load_vector(const Tensor& tensor) {
  const auto matrix = load_matrix(tensor);
  std::vector<float> values(matrix->rows() * matrix->columns());
  matrix->decode(0, matrix->rows(), values.data());
  return values;
}

}  // namespace poise
