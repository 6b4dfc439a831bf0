#include "runtime/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <poise/error.hpp>

#include "io/whole_blob.hpp"
#include "kernels/aligned_floats.hpp"
#include "kernels/product.hpp"
#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/blocks.hpp"
#include "views/dense.hpp"
#include "views/mx.hpp"
#include "views/transposed.hpp"

namespace poise {
namespace {

[[noreturn]] void refuse(const Tensor& tensor, std::string_view reason) {
  throw Error(ErrorKind::unsupported, fmt::format("tensor {} cannot be used as a weight: {}", tensor.name, reason));
}

// How the kernels see a tensor, and the blobs they read; scales and zeros are those of groups.
struct StoredForm {
  StoredRows rows;
  BlobPtr data;
  BlobPtr scales = nullptr;
  BlobPtr zeros = nullptr;
};

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

// How the kernels name what tensors hold.
struct FloatForm {
  DType dtype;
  Storage storage;
};
constexpr FloatForm kFloatForms[] = {
    {DType::f32, Storage::f32}, {DType::f16, Storage::f16}, {DType::bf16, Storage::bf16}};

struct AffineForm {
  DType dtype;
  bool ranged;
  bool packed;  // several codes in a byte
  Storage storage;
};
constexpr AffineForm kAffineForms[] = {
    {DType::qint8, false, false, Storage::i8},       {DType::qint8, false, true, Storage::i8},
    {DType::qint8, true, false, Storage::u8},        {DType::qint8, true, true, Storage::u8},
    {DType::qint4, false, true, Storage::i4},        {DType::qint4, true, true, Storage::u4},
    {DType::qint4, false, false, Storage::i4_bytes}, {DType::qint4, true, false, Storage::u4_bytes},
};

struct GroupForm {
  unsigned bits;
  Storage storage;
};
constexpr GroupForm kGroupForms[] = {{8, Storage::group8}, {4, Storage::group4}};

StoredRows affine_storage(const Tensor& tensor, const Part& data) {
  const Affine affine = tensor.layout.affine()->get();
  if (!std::isfinite(affine.delta) || !std::isfinite(affine.min) || !std::isfinite(affine.max))
    refuse(tensor, "its scale is not finite");
  const auto* const form = std::ranges::find_if(kAffineForms, [&](const AffineForm& one) {
    return one.dtype == data.dtype && one.ranged == affine.ranged() && one.packed == affine.packed;
  });
  if (form == std::end(kAffineForms))
    refuse(tensor, fmt::format("its codes are {}, expected qint8 or qint4", data.type_name()));
  return {.storage = form->storage, .scale = affine.delta, .offset = affine.ranged() ? affine.min : 0.0F};
}

// Groups as quantize_groups() makes them; nothing for other schemes.
std::optional<StoredForm> group_storage(const Tensor& tensor) {
  check_group_parts(tensor);
  const GroupScheme& scheme = *tensor.layout.groups();
  const std::size_t last = tensor.shape.size() - 1;
  const auto* const form = std::ranges::find(kGroupForms, scheme.bits, &GroupForm::bits);
  const bool in_bytes = form != std::end(kGroupForms) && scheme.per_word * scheme.bits == info(scheme.word).bits &&
                        !scheme.high_bits_first;
  const bool in_rows =
      scheme.axis == last && scheme.packing_axis == last && scheme.group_size > 0 && scheme.group_size % 16 == 0;
  if (!in_bytes || !in_rows || scheme.zeros != GroupScheme::Zeros::plain || scheme.power_of_two) return std::nullopt;
  const Part& scales = tensor.require("scales");
  const Part& zeros = tensor.require("zeros");
  if (scales.dtype != DType::f16 || zeros.dtype != DType::f16) return std::nullopt;
  StoredRows rows;
  rows.storage = form->storage;
  rows.group_size = static_cast<std::size_t>(scheme.group_size);
  return StoredForm{rows, tensor.require("packed_weight").blob, scales.blob, zeros.blob};
}

// MX numbers of four bits along rows; nothing for others.
std::optional<StoredForm> mx_storage(const Tensor& tensor) {
  check_mx_parts(tensor);
  const MxScheme& scheme = *tensor.layout.mx();
  const Part& data = tensor.require("data");
  if (data.dtype != DType::f4_e2m1 || scheme.axis + 1 != tensor.shape.size() || scheme.block_size != 32)
    return std::nullopt;
  StoredRows rows;
  rows.storage = Storage::mx4;
  rows.group_size = 32;
  return StoredForm{rows, data.blob, tensor.require("scales").blob};
}

// What has no kernel of its own is made float32, which takes memory.
StoredForm stored_form(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) {
    const Part& data = tensor.require("data");
    return {affine_storage(tensor, data), data.blob};
  }
  if (tensor.layout == Layout::quantized_group && has_float_elements(tensor)) {
    if (const auto form = group_storage(tensor)) return *form;
  }
  if (is_mx(tensor)) {
    if (const auto form = mx_storage(tensor)) return *form;
  }
  if (has_decoded_blocks(tensor) && tensor.layout.blocks_along() == BlocksAlong::rows) {
    check_block_parts(tensor);
    return {{.storage = Storage::blocks, .blocks = tensor.layout.blocks()}, tensor.require("data").blob};
  }
  if (tensor.layout == Layout::dense) {
    const Part& data = tensor.require("data");
    const auto* const form = std::ranges::find(kFloatForms, data.dtype, &FloatForm::dtype);
    if (form != std::end(kFloatForms)) return {{.storage = form->storage}, data.blob};
    if (!has_float_elements(tensor))
      refuse(tensor, fmt::format("its elements are {}; a weight is floating-point, or has a scale", data.type_name()));
  }
  if (!has_float_elements(tensor))
    refuse(tensor, fmt::format("it is stored as {}, which Poise makes no numbers of", storage_name(tensor)));
  return {{.storage = Storage::f32}, dense_blob(tensor, DType::f32)};
}

// Some rows of a matrix that is in memory with others. Requires: they begin at a whole byte.
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
    refuse(tensor, fmt::format("its shape is {}, expected a vector or a matrix", to_string(tensor.shape)));
  // The columns are what makes an output, and they are stored as rows.
  const bool turned = orientation == Orientation::in_out && tensor.shape.size() == 2 &&
                      tensor.layout.blocks_along() == BlocksAlong::columns;
  if (turned) return load_rows(transposed(tensor), tensor.shape[1], Orientation::out_in);
  return load_rows(tensor, tensor.shape.size() == 2 ? tensor.shape[0] : 1, orientation);
}

std::vector<std::unique_ptr<Matrix>> load_matrices(const Tensor& tensor, Orientation orientation) {
  if (tensor.shape.size() != 3)
    refuse(tensor, fmt::format("its shape is {}, expected several matrices", to_string(tensor.shape)));
  const std::size_t rows = tensor.shape[1];
  const std::shared_ptr<const Matrix> all = load_rows(tensor, tensor.shape[0] * rows, orientation);
  const bool half_bytes = all->stored().blocks == nullptr && stored_bytes(all->stored(), 2) < 2;
  if (half_bytes && rows * tensor.shape[2] % 2 != 0) refuse(tensor, "its matrices do not begin at whole bytes");
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

namespace {

// The products with one x, cut into units of outputs: what threads take.
class Work {
 public:
  Work(std::span<const Product> products, const float* x, std::size_t tokens, Precision precision)
      : products_(products), x_(x), tokens_(tokens), precision_(precision) {
    for (const Product& product : products) {
      units_ += units_of(*product.matrix);
      summed_ += sums_of(*product.matrix);
      if (product.matrix->orientation() == Orientation::out_in) take(product.matrix->stored());
    }
  }

  void run() {
    // A thread keeps its memory. While it waits it may take another product, which finds none.
    thread_local AlignedFloats of_thread;
    if (summed_ > 0) sums_ = std::move(of_thread);
    if (sums_.size() < summed_) sums_.resize(summed_);
    // A task of fewer products costs more to hand out than to do.
    constexpr std::size_t kProductsPerTask = 65536;
    const Matrix& first = *products_.front().matrix;
    const std::size_t unit_products = (is_summed(first) ? first.outputs() : first.inputs()) * tokens_ * unit_of(first);
    const std::size_t grain = std::max<std::size_t>(1, kProductsPerTask / std::max<std::size_t>(1, unit_products));
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, units_, grain),
                      [&](const auto& range) { multiply_units(range.begin(), range.end()); });
    if (summed_ == 0) return;
    add_up();
    of_thread = std::move(sums_);
  }

 private:
  // Of a matrix whose rows are those of x, one token takes some rows after the other, and then their sums are added up.
  bool is_summed(const Matrix& matrix) const { return tokens_ == 1 && matrix.orientation() == Orientation::in_out; }
  std::size_t unit_of(const Matrix& matrix) const {
    if (is_summed(matrix)) return kRowsAdded;
    return matrix.orientation() == Orientation::out_in ? rows_at_once(tokens_) : kColumnsAtOnce;
  }
  std::size_t length_of(const Matrix& matrix) const { return is_summed(matrix) ? matrix.inputs() : matrix.outputs(); }
  std::size_t units_of(const Matrix& matrix) const {
    return (length_of(matrix) + unit_of(matrix) - 1) / unit_of(matrix);
  }
  // How many sums a matrix has before they are added up: [units, outputs].
  std::size_t sums_of(const Matrix& matrix) const {
    return is_summed(matrix) ? units_of(matrix) * matrix.outputs() : 0;
  }

  void take(const StoredRows& matrix) {
    if (std::ranges::any_of(inputs_, [&](const KernelInput& input) { return input.suits(matrix); })) return;
    KernelInput& input = inputs_.emplace_back(matrix, tokens_, precision_);
    if (tokens_ == 1) return input.take(x_, 0, 1);
    constexpr std::size_t kGroup = KernelInput::kTogether;
    tbb::parallel_for(std::size_t{0}, input.groups(),
                      [&](std::size_t g) { input.take(x_, g * kGroup, std::min(tokens_, (g + 1) * kGroup)); });
  }

  void multiply_units(std::size_t begin, std::size_t end) {
    float* sums = sums_.data();
    for (const Product& product : products_) {
      const std::size_t unit = unit_of(*product.matrix);
      const std::size_t units = units_of(*product.matrix);
      if (begin < std::min(units, end))
        multiply_part(product, begin * unit, std::min(length_of(*product.matrix), std::min(units, end) * unit), sums);
      if (end <= units) return;
      begin -= std::min(begin, units);
      end -= units;
      sums += sums_of(*product.matrix);
    }
  }

  // Outputs, or inputs of a matrix whose rows are summed; these begin and end with units.
  void multiply_part(const Product& product, std::size_t first, std::size_t last, float* sums) const {
    const Matrix& matrix = *product.matrix;
    if (is_summed(matrix)) {
      for (std::size_t r = first; r < last; r += kRowsAdded) {
        float* const to = sums + r / kRowsAdded * matrix.outputs();
        std::fill_n(to, matrix.outputs(), 0.0F);
        add_rows(matrix.stored(), r, std::min(last, r + kRowsAdded), x_, to);
      }
      return;
    }
    if (matrix.orientation() == Orientation::in_out)
      return multiply_columns(matrix.stored(), matrix.rows(), first, last, x_, tokens_, product.y);
    const auto input =
        std::ranges::find_if(inputs_, [&](const KernelInput& one) { return one.suits(matrix.stored()); });
    multiply_rows(matrix.stored(), first, last, *input, product.y, matrix.rows());
  }

  void add_up() const {
    const float* sums = sums_.data();
    for (const Product& product : products_) {
      if (!is_summed(*product.matrix)) continue;
      const std::size_t outputs = product.matrix->outputs();
      std::copy_n(sums, outputs, product.y);
      for (std::size_t unit = 1; unit < units_of(*product.matrix); ++unit) {
        for (std::size_t i = 0; i < outputs; ++i) product.y[i] += sums[unit * outputs + i];
      }
      sums += sums_of(*product.matrix);
    }
  }

  std::span<const Product> products_;
  const float* x_;
  std::size_t tokens_;
  Precision precision_;
  std::size_t units_ = 0;
  std::size_t summed_ = 0;  // sums of all matrices that have some before they are added up
  AlignedFloats sums_;
  std::vector<KernelInput> inputs_;  // one, unless matrices are stored in several ways
};

}  // namespace

void multiply(std::span<const Product> products, const float* x, std::size_t tokens, Precision precision) {
  Work(products, x, tokens, precision).run();
}

void multiply(const Matrix& matrix, const float* x, std::size_t tokens, float* y, Precision precision) {
  const Product product = {&matrix, y};
  multiply(std::span(&product, 1), x, tokens, precision);
}

}  // namespace poise
