// Matrix is a weight of a transformer, read from any layout and element type.
//
// It borrows the bytes of a mapped blob, and reads any other blob into memory once. A const Matrix is thread-safe.
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

// States which numbers a row of a stored matrix has.
enum class Orientation : std::uint8_t {
  out_in,  // the numbers that make one output
  in_out,  // the numbers that multiply one input
};

// Selects the whole matrix, or those of its outputs or inputs that are in the range.
struct MatrixShare {
  enum class Side : std::uint8_t { all, outputs, inputs } side = Side::all;
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
  // These functions return the lengths of x and y in y = x times the matrix.
  std::size_t inputs() const { return orientation_ == Orientation::out_in ? columns() : rows(); }
  std::size_t outputs() const { return orientation_ == Orientation::out_in ? rows() : columns(); }
  const StoredRows& stored() const { return stored_; }
  // Returns how many rows a head has if its rows are stored in pairs, while the matrix has them in halves
  // (views/row_order.hpp); 0: both have the same order.
  std::size_t paired_rows() const { return paired_rows_; }
  // Returns, for each column of the stored rows, its column in the matrix; empty: both have the same order.
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

// Loads a tensor of rank 2 [rows, columns], or of rank 1 as one row. It becomes float32 in memory if there are no
// kernels for its type, or if the part cannot be cut out of its storage (find_share_step()). An empty part has the
// whole length of the other side, and its products are zeros. Reads only the bytes of the part. Throws unsupported,
// naming the tensor, for another rank and for elements that are not floating-point numbers (integers without a scale),
// and what reading its blobs throws. Requires: the tensor has the part.
std::unique_ptr<Matrix> load_matrix(const Tensor& tensor, Orientation orientation = Orientation::out_in,
                                    const MatrixShare& part = {});

// Returns the matrices [rows, columns] of a tensor of rank 3: all, or those with indices in `which`. Requires: the
// tensor has these.
std::vector<std::unique_ptr<Matrix>> load_matrices(const Tensor& tensor, Orientation orientation,
                                                   const std::optional<IndexRange>& which = {});

// Returns a step: a part of a matrix that begins and ends at multiples of it keeps its storage. It is 1, or the number
// of elements along the divided side that cannot be separated: a block, a group, a byte of codes, rows that share a
// scale, or the 16 columns that kernels multiply at a time. It is also 1 for a matrix whose parts all become float32.
std::size_t find_share_step(const Tensor& tensor, Orientation orientation, MatrixShare::Side side);

// Returns all elements of a small tensor (a norm) as float32.
std::vector<float> load_vector(const Tensor& tensor);

// Names one of several products with the same x. Computing them at once keeps threads busier than one by one.
struct Product {
  const Matrix* matrix = nullptr;
  float* y = nullptr;
};

// Receives the inputs of products, for importance matrices.
class InputObserver {
 public:
  virtual ~InputObserver() = default;
  InputObserver(const InputObserver&) = delete;
  InputObserver& operator=(const InputObserver&) = delete;

  // Receives the x [tokens, inputs] of products before they are computed. In a pass of one token, several threads may
  // call this at once, for different experts.
  virtual void observe(std::span<const Product> products, const float* x, std::size_t tokens) = 0;

 protected:
  InputObserver() = default;
};

struct ProductOptions {
  ProductOptions(Precision product_precision, InputObserver* input_observer = nullptr)
      : precision(product_precision), observer(input_observer) {}

  Precision precision;
  InputObserver* observer;  // null: none
};

// Computes y [tokens, outputs] = x [tokens, inputs] times the matrix, on the threads of the calling task arena. The
// other tokens affect the bits of a token's y only by their number. This number decides whether there are few tokens
// (KernelInput::is_few(); each then gets the bits that it gets alone), and which form x has (KernelInput::Form). For a
// matrix [in, out] it matters only whether a token is alone. With Precision::exact the other tokens do not affect the
// bits. With Precision::apart each token gets the bits that it gets alone with Precision::fast, and weights are still
// read from memory only once for up to KernelInput::kFewTokens tokens.
void multiply(const Matrix& matrix, const float* x, std::size_t tokens, float* y,
              const ProductOptions& options = Precision::fast);
void multiply(std::span<const Product> products, const float* x, std::size_t tokens,
              const ProductOptions& options = Precision::fast);

// Names the matrices of a gated network. x is multiplied by gate and up: two matrices, or two ranges of rows of one
// matrix, which begin at `first`. `combine` makes one result of both, which is then multiplied by down.
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

// Computes y = down times combine(gate times x, up times x), with the same bits as three calls of multiply(). The
// results of `combine` stay in the processor's cache: each block is converted to the form for down as soon as it is
// computed.
// Returns false, without computing, for few tokens, for Precision::apart, for matrices that are empty, [in, out] or
// stored in another order, and for an observer, which needs the intermediate results.
bool multiply_gated(const GatedProduct& product, const float* x, std::size_t tokens, float* y,
                    const ProductOptions& options);

// Holds a weight tensor in the form that kernels read. The blobs have the bytes to which pointers of `rows` will refer.
// `scales` and `zeros` have a number for each group.
struct StoredForm {
  StoredRows rows;
  BlobPtr data;
  BlobPtr scales = nullptr;
  BlobPtr zeros = nullptr;
  BlobPtr table = nullptr;
  std::vector<std::uint32_t> row_groups = {};    // the groups of the rows, for by_column8 and by_column4
  std::vector<std::uint32_t> column_order = {};  // the column of the tensor for each stored column; empty: in order
};

// Returns all elements as float32. Unless the file has them as float32, they take memory when they are loaded.
StoredForm make_float_form(const Tensor& tensor);

// Returns the form that kernels read. Types without kernels become float32. Throws unsupported, naming the tensor, for
// elements that are not floating-point numbers, and what checking its parts throws.
StoredForm make_stored_form(const Tensor& tensor);

// Throws unsupported: the tensor cannot be used as a weight, for this reason.
[[noreturn]] void refuse_weight(const Tensor& tensor, std::string_view reason);

}  // namespace poise
