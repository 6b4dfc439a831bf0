// Matrix: a weight for transformers, from any layout and element type.
//
// Borrows the bytes of a mapped blob, and reads any other into memory once. A const Matrix is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/model.hpp>
#include <poise/tensor.hpp>

#include "kernels/product.hpp"

namespace poise {

// Says which numbers form a row of a stored matrix.
enum class Orientation : std::uint8_t {
  out_in,  // those that make one output
  in_out,  // those that meet one input
};

// Names some outputs or inputs of a matrix.
struct MatrixPart {
  enum class Of : std::uint8_t { all, outputs, inputs } of = Of::all;
  IndexRange range = {};
};

class Matrix {
 public:
  virtual ~Matrix() = default;
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return stored_.columns; }
  Orientation orientation() const { return orientation_; }
  // Returns the length of x and y in y = x times the matrix.
  std::size_t inputs() const { return orientation_ == Orientation::out_in ? columns() : rows(); }
  std::size_t outputs() const { return orientation_ == Orientation::out_in ? rows() : columns(); }
  const StoredRows& stored() const { return stored_; }
  // Returns how many rows a head has whose stored rows are in pairs, while rows and outputs are in halves
  // (views/row_order.hpp); 0: both have the same order.
  std::size_t paired_rows() const { return paired_rows_; }
  // Returns which column of the matrix each column of stored rows is; empty: both have the same order.
  std::span<const std::uint32_t> column_order() const { return column_order_; }

  // Names the tensor that has the matrix, and which of the tensor's matrices it is.
  struct Origin {
    std::string tensor = {};
    std::size_t index = 0;
  };
  const Origin& origin() const { return origin_; }

  // Decodes rows [first, first + count) to float32: out [count, columns].
  void decode(std::size_t first, std::size_t count, float* out) const;

 protected:
  Matrix(Origin origin, std::size_t rows, Orientation orientation, const StoredRows& stored,
         std::size_t paired_rows = 0, std::vector<std::uint32_t> column_order = {})
      : origin_(std::move(origin)),
        rows_(rows),
        orientation_(orientation),
        stored_(stored),
        paired_rows_(paired_rows),
        column_order_(std::move(column_order)) {}

  Origin origin_;
  std::size_t rows_;
  Orientation orientation_;
  StoredRows stored_;
  std::size_t paired_rows_;
  std::vector<std::uint32_t> column_order_;
};

// Loads a tensor of rank 2 [rows, columns], or of rank 1 as one row. Types without kernels become float32 in memory.
// So does a part that does not begin and end at multiples of find_part_step(). An empty part keeps the length of the
// other side, and its products are zeros. Throws unsupported, naming the tensor, for elements that are not
// floating-point numbers (integers without a scale), and what reading its blobs throws. Reads only the bytes of the
// part. Requires: the tensor has the part.
std::unique_ptr<Matrix> load_matrix(const Tensor& tensor, Orientation orientation = Orientation::out_in,
                                    const MatrixPart& part = {});

// Returns the matrices [rows, columns] of a tensor of rank 3, or some of them. Requires: the tensor has these.
std::vector<std::unique_ptr<Matrix>> load_matrices(const Tensor& tensor, Orientation orientation,
                                                   const std::optional<IndexRange>& which = {});

// Returns where parts of a matrix may begin and keep its storage: 1, or the numbers of a block, a group or a byte of
// codes if these are along the outputs or inputs that the parts have.
std::size_t find_part_step(const Tensor& tensor, Orientation orientation, MatrixPart::Of of);

// Returns all elements of a small tensor (a norm) as float32.
std::vector<float> load_vector(const Tensor& tensor);

// Names one of several products of the same x. Computing them at once keeps threads busier than one by one.
struct Product {
  const Matrix* matrix = nullptr;
  float* y = nullptr;
};

// Sees what meets the matrices.
class InputObserver {
 public:
  virtual ~InputObserver() = default;
  InputObserver(const InputObserver&) = delete;
  InputObserver& operator=(const InputObserver&) = delete;

  // Gets x [tokens, inputs] of products before they are computed. Passes of one token may call this from several
  // threads at once, for different experts.
  virtual void observe(std::span<const Product> products, const float* x, std::size_t tokens) = 0;

 protected:
  InputObserver() = default;
};

// Says how products are computed.
struct ProductOptions {
  ProductOptions(Precision product_precision, InputObserver* input_observer = nullptr)
      : precision(product_precision), observer(input_observer) {}

  Precision precision;
  InputObserver* observer;  // null: none
};

// Computes y [tokens, outputs] = x [tokens, inputs] times the matrix. Runs on the threads of the calling task arena. A
// token gets the same bits alone and among few (KernelInput::is_few()), and among any number of tokens whose x has the
// same form (KernelInput::Form); with Precision::exact among any tokens. With Precision::apart each token gets the bits
// that it gets alone with Precision::fast, and each weight still comes from memory once.
void multiply(const Matrix& matrix, const float* x, std::size_t tokens, float* y,
              const ProductOptions& options = Precision::fast);
void multiply(std::span<const Product> products, const float* x, std::size_t tokens,
              const ProductOptions& options = Precision::fast);

// Names the matrices of a gated network. Its x meets two matrices, or the rows of one from `first` on; `combine`
// combines their numbers, and the results meet a third matrix.
struct GatedProduct {
  struct Rows {
    const Matrix* matrix = nullptr;
    std::size_t first = 0;
  };
  Rows gate;
  Rows up;
  void (*combine)(float* gate, const float* up, std::size_t count) = nullptr;  // overwrites `gate`
  const Matrix* down = nullptr;
};

// Computes y = down times combine(gate times x, up times x), with the same bits as three calls. The intermediate
// results stay in the cache: a block of it goes from the first products to the form for the last ones. Returns false,
// without products, for few tokens, where rows or columns of a matrix are stored in another order, and for an observer,
// which needs the intermediate results.
bool multiply_gated(const GatedProduct& product, const float* x, std::size_t tokens, float* y,
                    const ProductOptions& options);

// Holds a weight tensor in the form for kernels. The blobs hold the bytes for `rows`; scales and zeros are those of
// groups.
struct StoredForm {
  StoredRows rows;
  BlobPtr data;
  BlobPtr scales = nullptr;
  BlobPtr zeros = nullptr;
  BlobPtr table = nullptr;
  std::vector<std::uint32_t> row_groups = {};    // of by_column8 and by_column4
  std::vector<std::uint32_t> column_order = {};  // which column of the tensor each is; empty: in order
};

// Returns all elements as float32, which takes memory.
StoredForm make_float_form(const Tensor& tensor);

// Returns the form that kernels read. Types without kernels become float32. Throws unsupported, naming the tensor, for
// elements that are not floating-point numbers, and what checking its parts throws.
StoredForm find_stored_form(const Tensor& tensor);

// Throws unsupported, because the tensor cannot be used as a weight.
[[noreturn]] void refuse_weight(const Tensor& tensor, std::string_view reason);

}  // namespace poise
