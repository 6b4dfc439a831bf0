// Compares blocks of columns with the same numbers as float32, and parts of matrices with the whole.
#include "runtime/matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <tbb/task_arena.h>

#include <poise/error.hpp>
#include <poise/stored_type.hpp>
#include <poise/values.hpp>

#include "codec/block_type.hpp"
#include "kernels/activation.hpp"
#include "support/units.hpp"
#include "views/affine.hpp"
#include "views/dense.hpp"
#include "views/row_order.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

constexpr std::size_t kIn = 64, kOut = 96;

std::vector<float> waves(std::size_t count, float step) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = std::sin(static_cast<float>(i) * step);
  return numbers;
}

// Makes a matrix [in, out] of blocks along columns.
Tensor blocks_of_columns() {
  return transpose_view(quantize_to_blocks(make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F)),
                                           *find_named_block_type("q8_0"), nullptr));
}

std::vector<float> product(const Tensor& tensor, Orientation orientation, std::size_t tokens) {
  const auto matrix = load_matrix(tensor, orientation);
  const std::vector<float> x = waves(tokens * matrix->inputs(), 0.3F);
  std::vector<float> y(tokens * matrix->outputs());
  multiply(*matrix, x.data(), tokens, y.data(), Precision::exact);
  return y;
}

TEST(Matrix, BlocksOfColumnsAreReadAsStored) {
  const Tensor columns = blocks_of_columns();
  const auto matrix = load_matrix(columns, Orientation::in_out);
  EXPECT_EQ(matrix->orientation(), Orientation::out_in);
  EXPECT_EQ(matrix->inputs(), kIn);
  EXPECT_EQ(matrix->outputs(), kOut);
  EXPECT_NE(matrix->stored().blocks, nullptr);
}

TEST(Matrix, NumbersStoredTransposedAreReadAsStored) {
  const Tensor stored = make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F));
  const Tensor columns = transpose_view(stored);
  const auto matrix = load_matrix(columns, Orientation::in_out);
  EXPECT_EQ(matrix->orientation(), Orientation::out_in);
  EXPECT_EQ(matrix->stored().data, stored.parts.front().blob->map()->data());
  const Tensor copy = make_tensor("w", {kIn, kOut}, values(columns));
  EXPECT_THAT(product(columns, Orientation::in_out, 5),
              testing::Pointwise(testing::FloatNear(1e-4F), product(copy, Orientation::in_out, 5)));
  EXPECT_EQ(load_matrix(columns, Orientation::out_in)->rows(), kIn);
}

TEST(Matrix, BlocksOfColumnsMakeTheProductsOfTheirNumbers) {
  const Tensor columns = blocks_of_columns();
  const Tensor dense = make_tensor("w", {kIn, kOut}, values(columns));
  for (const Orientation orientation : {Orientation::in_out, Orientation::out_in}) {
    for (const std::size_t tokens : {1U, 5U, 40U}) {
      const std::vector<float> expected = product(dense, orientation, tokens);
      EXPECT_THAT(product(columns, orientation, tokens), testing::Pointwise(testing::FloatNear(1e-4F), expected))
          << tokens;
    }
  }
}

// A row makes an output: in an embedding it belongs to a token.
TEST(Matrix, RowsOfBlocksOfColumnsAreRows) {
  const Tensor columns = blocks_of_columns();
  const auto matrix = load_matrix(columns, Orientation::out_in);
  ASSERT_EQ(matrix->rows(), kIn);
  std::vector<float> row(kOut);
  matrix->decode(3, 1, row.data());
  const std::vector<float> all = values(columns);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), all.begin() + 3 * kOut));
}

// Returns two tensors of the same numbers: rows in pairs that are read in halves, and a copy in halves.
std::pair<Tensor, Tensor> rows_in_pairs(Tensor tensor, std::uint64_t head_rows) {
  Part& data = tensor.parts.front();
  data.blob = reorder_rows(data.blob, data.blob->size() / kOut, head_rows, RowOrder::halves);
  Tensor copy = tensor;
  copy.parts.front().blob = make_memory_blob(read_all(*data.blob), "copy");
  return {tensor, copy};
}

TEST(Matrix, RowsInPairsAreBorrowed) {
  const Tensor numbers = make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F));
  for (Tensor stored : {numbers, quantize_to_blocks(numbers, *find_named_block_type("q8_0"), nullptr)}) {
    BlobPtr blob = make_memory_blob(read_all(*stored.parts.front().blob), "stored");
    const std::byte* const data = blob->map()->data();
    stored.parts.front().blob = std::move(blob);
    const auto [in_pairs, copy] = rows_in_pairs(stored, 24);
    const auto matrix = load_matrix(in_pairs);
    const auto expected = load_matrix(copy);
    EXPECT_EQ(matrix->stored().data, data);
    EXPECT_EQ(matrix->paired_rows(), 24U);

    std::vector<float> rows(kOut * kIn), expected_rows(kOut * kIn);
    matrix->decode(0, kOut, rows.data());
    expected->decode(0, kOut, expected_rows.data());
    EXPECT_EQ(rows, expected_rows);
    for (const std::size_t tokens : {1U, 5U, 20U, 300U}) {
      const std::vector<float> x = waves(tokens * kIn, 0.3F);
      for (const Precision precision : {Precision::fast, Precision::exact, Precision::apart}) {
        std::vector<float> y(tokens * kOut), expected_y(tokens * kOut);
        multiply(*matrix, x.data(), tokens, y.data(), precision);
        multiply(*expected, x.data(), tokens, expected_y.data(), precision);
        EXPECT_EQ(y, expected_y) << tokens;
      }
    }
  }
}

// Parts are copied, and so are matrices that are not in memory.
TEST(Matrix, PartsOfRowsInPairsAreInHalves) {
  const auto [in_pairs, copy] = rows_in_pairs(make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F)), 24);
  const MatrixShare part = {MatrixShare::Side::outputs, {10, 60}};
  const auto matrix = load_matrix(in_pairs, Orientation::out_in, part);
  const auto expected = load_matrix(copy, Orientation::out_in, part);
  std::vector<float> rows(50 * kIn), expected_rows(50 * kIn);
  matrix->decode(0, 50, rows.data());
  expected->decode(0, 50, expected_rows.data());
  EXPECT_EQ(rows, expected_rows);

  Tensor far = in_pairs;
  const Tensor halved = make_dense("w", copy.shape, DType::f16,  // computed when it is read
                                   make_cast_blob("w", copy.parts.front().blob, DType::f32, kOut * kIn, DType::f16));
  far.parts.front() = halved.parts.front();
  far.parts.front().blob = reorder_rows(halved.parts.front().blob, 2 * kIn, 24, RowOrder::halves);
  const auto computed = load_matrix(far);
  EXPECT_EQ(computed->paired_rows(), 0U);
  std::vector<float> row(kIn), expected_row(kIn);
  computed->decode(1, 1, row.data());
  load_matrix(halved)->decode(2, 1, expected_row.data());
  EXPECT_EQ(row, expected_row);
}

TEST(Matrix, TokensApartGetWhatEachGetsAlone) {
  const std::vector<std::pair<Tensor, Orientation>> all = {
      {make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F)), Orientation::out_in},
      {make_tensor("w", {kIn, kOut}, waves(kOut * kIn, 0.7F)), Orientation::in_out},
      {quantize_to_blocks(make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F)), *find_named_block_type("q4_0"),
                          nullptr),
       Orientation::out_in}};
  for (const auto& [tensor, orientation] : all) {
    constexpr std::size_t kTokens = 5;
    const auto matrix = load_matrix(tensor, orientation);
    const std::vector<float> x = waves(kTokens * matrix->inputs(), 0.3F);
    std::vector<float> alone(kTokens * matrix->outputs());
    std::vector<float> apart(alone.size());
    for (std::size_t t = 0; t < kTokens; ++t)
      multiply(*matrix, x.data() + t * matrix->inputs(), 1, alone.data() + t * matrix->outputs());
    multiply(*matrix, x.data(), kTokens, apart.data(), Precision::apart);
    EXPECT_EQ(apart, alone);
  }
}

// Returns a matrix in each form that products of several tokens take. Rows end within a block.
std::vector<Tensor> in_each_form(const std::string& name, std::size_t rows, std::size_t columns, float step) {
  const Tensor numbers = make_tensor(name, {rows, columns}, waves(rows * columns, step));
  std::vector<Tensor> tensors = {numbers};
  for (const DType dtype : {DType::f16, DType::bf16})
    tensors.push_back(make_dense(name, numbers.shape, dtype, make_dense_blob(numbers, dtype)));
  for (const std::string_view type : {"qint8", "qint4", "group4:32", "q4_0", "q8_0"})
    tensors.push_back(quantized(numbers, *stored_type_from_name(type)));
  return tensors;
}

TEST(Matrix, GatedNetworksGoInBlocksWithTheBitsOfThreeProducts) {
  constexpr std::size_t kHidden = 96;
  constexpr std::size_t kInner = 736;
  constexpr std::size_t kTokens = 40;
  const std::vector<Tensor> gates = in_each_form("gate", kInner, kHidden, 0.7F);
  const std::vector<Tensor> ups = in_each_form("up", kInner, kHidden, 0.6F);
  const std::vector<Tensor> both = in_each_form("gate_up", 2 * kInner, kHidden, 0.5F);
  const std::vector<Tensor> downs = in_each_form("down", kHidden, kInner, 0.4F);
  const std::vector<float> x = waves(kTokens * kHidden, 0.3F);
  const auto compare = [&] {
    for (const Unit& unit : every_unit()) {
      const ChosenUnit chosen(unit);
      for (std::size_t i = 0; i < gates.size(); ++i) {
        const auto gate = load_matrix(gates[i]);
        const auto up = load_matrix(ups[(i + 1) % ups.size()]);  // of another type
        const auto gate_up = load_matrix(both[i]);
        const auto down = load_matrix(downs[i]);
        for (const Precision precision : {Precision::fast, Precision::exact}) {
          const auto expect_three_products = [&](const GatedProduct& product) {
            std::vector<float> y(kTokens * kHidden);
            ASSERT_TRUE(multiply_gated(product, x.data(), kTokens, y.data(), precision));
            const auto multiply_rows = [&](const GatedProduct::Rows& rows) {
              std::vector<float> all(kTokens * rows.matrix->outputs());
              multiply(*rows.matrix, x.data(), kTokens, all.data(), precision);
              std::vector<float> some;
              for (std::size_t t = 0; t < kTokens; ++t) {
                const auto from = all.begin() + static_cast<std::ptrdiff_t>(t * rows.matrix->outputs() + rows.first);
                some.insert(some.end(), from, from + kInner);
              }
              return some;
            };
            std::vector<float> inner = multiply_rows(product.gate);
            gate_with_silu(inner.data(), multiply_rows(product.up).data(), inner.size());
            std::vector<float> expected(y.size());
            multiply(*down, inner.data(), kTokens, expected.data(), precision);
            EXPECT_EQ(y, expected) << unit << " " << i;
          };
          expect_three_products({{gate.get(), 0}, {up.get(), 0}, gate_with_silu, down.get()});
          expect_three_products({{gate_up.get(), 0}, {gate_up.get(), kInner}, gate_with_silu, down.get()});
        }
        std::vector<float> y(kTokens * kHidden);
        const GatedProduct product = {{gate.get(), 0}, {up.get(), 0}, gate_with_silu, down.get()};
        EXPECT_FALSE(multiply_gated(product, x.data(), 4, y.data(), Precision::fast));
        EXPECT_FALSE(multiply_gated(product, x.data(), 16, y.data(), Precision::apart));
      }
    }
  };
  // Two threads share the last of three blocks, four share all.
  for (const int threads : {2, 4}) tbb::task_arena(threads).execute(compare);
}

// Each part of each stored type decodes to the numbers that the whole has there.
TEST(Matrix, PartsAreThoseOfTheWhole) {
  constexpr std::size_t kRows = 10;
  constexpr std::size_t kColumns = 512;
  const Tensor numbers = make_tensor("w", {kRows, kColumns}, waves(kRows * kColumns, 0.7F));
  std::vector<Tensor> tensors = {numbers};
  for (const DType dtype : {DType::f16, DType::bf16})
    tensors.push_back(make_dense("w", numbers.shape, dtype, make_dense_blob(numbers, dtype)));
  const std::vector<float> floats = values(numbers);
  const std::vector<double> doubles(floats.begin(), floats.end());
  const auto bytes = std::as_bytes(std::span(doubles));
  tensors.push_back(make_dense("w", numbers.shape, DType::f64, make_memory_blob({bytes.begin(), bytes.end()}, "w")));
  for (const std::string_view type :
       {"qint8", "qint4", "qint4:range", "group8:32", "group4:64", "q8_0", "q4_0", "q4_k", "iq4_nl", "mxfp4"})
    tensors.push_back(quantized(numbers, *stored_type_from_name(type)));
  for (const Tensor& tensor : tensors) {
    SCOPED_TRACE(tensor.layout.name());
    const auto whole = load_matrix(tensor);
    std::vector<float> all(kRows * kColumns);
    whole->decode(0, kRows, all.data());
    const std::size_t step = find_share_step(tensor, Orientation::out_in, MatrixShare::Side::inputs);
    EXPECT_EQ(256 % step, 0U);
    EXPECT_EQ(find_share_step(tensor, Orientation::out_in, MatrixShare::Side::outputs), 1U);
    EXPECT_EQ(find_share_step(tensor, Orientation::in_out, MatrixShare::Side::outputs), step);
    for (const Orientation orientation : {Orientation::out_in, Orientation::in_out}) {
      const bool rows_are_outputs = orientation == Orientation::out_in;
      const auto of_rows = rows_are_outputs ? MatrixShare::Side::outputs : MatrixShare::Side::inputs;
      const auto of_columns = rows_are_outputs ? MatrixShare::Side::inputs : MatrixShare::Side::outputs;
      const auto rows = load_matrix(tensor, orientation, {of_rows, {3, 8}});
      ASSERT_EQ(rows->rows(), 5U);
      ASSERT_EQ(rows->columns(), kColumns);
      std::vector<float> found(5 * kColumns);
      rows->decode(0, 5, found.data());
      EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin() + 3 * kColumns));
      const std::size_t first = 256 - step;
      const auto columns = load_matrix(tensor, orientation, {of_columns, {first, kColumns}});
      ASSERT_EQ(columns->rows(), kRows);
      ASSERT_EQ(columns->columns(), kColumns - first);
      found.resize(kRows * columns->columns());
      columns->decode(0, kRows, found.data());
      for (std::size_t r = 0; r < kRows; ++r) {
        for (std::size_t c = first; c < kColumns; ++c)
          ASSERT_EQ(found[r * columns->columns() + c - first], all[r * kColumns + c]) << r << " " << c;
      }
      if (step == 1) continue;
      const auto elsewhere = load_matrix(tensor, orientation, {of_columns, {1, kColumns}});
      EXPECT_EQ(elsewhere->stored().storage, Storage::f32);
      found.resize(kRows * elsewhere->columns());
      elsewhere->decode(0, kRows, found.data());
      // The kernel and the view that makes float32 numbers may round a product and a sum once or twice.
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_FLOAT_EQ(found[i], all[i / (kColumns - 1) * kColumns + 1 + i % (kColumns - 1)]);
    }
  }
}

TEST(Matrix, PartsOfBlocksOfColumnsAreThoseOfTheWhole) {
  const Tensor columns = blocks_of_columns();
  std::vector<float> all(kIn * kOut);
  load_matrix(columns, Orientation::in_out)->decode(0, kOut, all.data());  // [out, in]
  const auto outputs = load_matrix(columns, Orientation::in_out, {MatrixShare::Side::outputs, {5, 7}});
  ASSERT_EQ(outputs->outputs(), 2U);
  std::vector<float> found(2 * kIn);
  outputs->decode(0, 2, found.data());
  EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin() + 5 * kIn));
  EXPECT_EQ(find_share_step(columns, Orientation::in_out, MatrixShare::Side::inputs), 32U);
  const auto inputs = load_matrix(columns, Orientation::in_out, {MatrixShare::Side::inputs, {32, 64}});
  ASSERT_EQ(inputs->inputs(), 32U);
  found.resize(kOut * 32);
  inputs->decode(0, kOut, found.data());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], all[i / 32 * kIn + 32 + i % 32]);
}

// Remembers which bytes were read.
class WatchedBlob final : public Blob {
 public:
  explicit WatchedBlob(std::size_t size) : read_(size) {}

  std::uint64_t size() const override { return read_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      read_[offset + i] = true;
      out[i] = std::byte{0};
    }
  }
  std::size_t count(std::size_t first, std::size_t last) const {
    return static_cast<std::size_t>(std::count(read_.begin() + static_cast<std::ptrdiff_t>(first),
                                               read_.begin() + static_cast<std::ptrdiff_t>(last), true));
  }

 private:
  mutable std::vector<bool> read_;
};

TEST(Matrix, APartReadsItsOwnBytes) {
  for (const auto of : {MatrixShare::Side::outputs, MatrixShare::Side::inputs}) {
    const auto blob = std::make_shared<WatchedBlob>(10 * 16 * sizeof(float));
    (void)load_matrix(make_dense("w", {10, 16}, DType::f32, blob), Orientation::out_in, {of, {4, 6}});
    EXPECT_EQ(blob->count(0, blob->size()), 2U * (of == MatrixShare::Side::outputs ? 16 : 10) * sizeof(float));
    if (of == MatrixShare::Side::outputs) {
      EXPECT_EQ(blob->count(4 * 64, 6 * 64), 128U);
    } else {
      EXPECT_EQ(blob->count(3 * 64 + 16, 3 * 64 + 24), 8U);
    }
  }
}

TEST(Matrix, PartsOfRowsThatBeginInTheMiddleOfAByteAreFloats) {
  const Tensor odd = quantized(make_tensor("w", {4, 5}, waves(20, 0.7F)), *stored_type_from_name("qint4"));
  std::vector<float> all(20);
  load_matrix(odd)->decode(0, 4, all.data());
  const auto part = load_matrix(odd, Orientation::out_in, {MatrixShare::Side::outputs, {1, 3}});
  EXPECT_EQ(part->stored().storage, Storage::f32);
  std::vector<float> found(10);
  part->decode(0, 2, found.data());
  EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin() + 5));
}

TEST(Matrix, EmptyPartsMakeZeros) {
  const Tensor tensor = make_tensor("w", {4, 6}, waves(24, 0.7F));
  const auto no_inputs = load_matrix(tensor, Orientation::out_in, {MatrixShare::Side::inputs, {3, 3}});
  const auto no_outputs = load_matrix(tensor, Orientation::out_in, {MatrixShare::Side::outputs, {2, 2}});
  const auto all = load_matrix(tensor);
  ASSERT_EQ(no_inputs->outputs(), 4U);
  ASSERT_EQ(no_outputs->inputs(), 6U);
  for (const std::size_t tokens : {1U, 3U}) {
    for (const Precision precision : {Precision::fast, Precision::exact, Precision::apart}) {
      const std::vector<float> x(6 * tokens, 1.0F);
      std::vector<float> zeros(4 * tokens, 7.0F);
      multiply(*no_inputs, x.data(), tokens, zeros.data(), precision);
      EXPECT_THAT(zeros, testing::Each(0.0F));
      std::vector<float> alone(4 * tokens);
      multiply(*all, x.data(), tokens, alone.data(), precision);
      std::vector<float> together(4 * tokens);
      multiply(std::array{Product{no_outputs.get(), nullptr}, Product{all.get(), together.data()}}, x.data(), tokens,
               precision);
      EXPECT_EQ(together, alone);
    }
  }
}

TEST(Matrix, SomeOfSeveralMatricesAreThoseOfAll) {
  const Tensor stack = make_tensor("experts", {3, 4, 6}, waves(72, 0.7F));
  const std::vector<float> numbers = values(stack);
  for (const Orientation orientation : {Orientation::out_in, Orientation::in_out}) {
    const auto some = load_matrices(stack, orientation, IndexRange{1, 3});
    ASSERT_EQ(some.size(), 2U);
    for (std::size_t m = 0; m < 2; ++m) {
      std::vector<float> found(24);
      some[m]->decode(0, 4, found.data());
      EXPECT_TRUE(std::equal(found.begin(), found.end(), numbers.begin() + static_cast<std::ptrdiff_t>(24 * (m + 1))));
    }
    EXPECT_TRUE(load_matrices(stack, orientation, IndexRange{2, 2}).empty());
  }
}

}  // namespace
}  // namespace poise
