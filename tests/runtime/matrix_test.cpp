// Blocks of columns against the same numbers as float32.
#include "runtime/matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <poise/values.hpp>

#include "codec/block_type.hpp"
#include "views/block_quantize.hpp"
#include "views/transposed.hpp"

namespace poise {
namespace {

constexpr std::size_t kIn = 64, kOut = 96;

std::vector<float> waves(std::size_t count, float step) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = std::sin(static_cast<float>(i) * step);
  return numbers;
}

// [in, out]
Tensor blocks_of_columns() {
  return transposed(
      quantize_to_blocks(make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F)), *block_type_named("q8_0"), nullptr));
}

std::vector<float> product(const Tensor& tensor, Orientation orientation, std::size_t tokens) {
  const auto matrix = load_matrix(tensor, orientation);
  const std::vector<float> x = waves(tokens * matrix->inputs(), 0.3F);
  std::vector<float> y(tokens * matrix->outputs());
  multiply(*matrix, x.data(), tokens, y.data(), Precision::exact);
  return y;
}

TEST(Matrix, BlocksOfColumnsAreReadAsTheyLie) {
  const Tensor columns = blocks_of_columns();
  const auto matrix = load_matrix(columns, Orientation::in_out);
  EXPECT_EQ(matrix->orientation(), Orientation::out_in);
  EXPECT_EQ(matrix->inputs(), kIn);
  EXPECT_EQ(matrix->outputs(), kOut);
  EXPECT_NE(matrix->stored().blocks, nullptr);
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

// A row is what makes an output here: an embedding's is a token.
TEST(Matrix, RowsOfBlocksOfColumnsAreRows) {
  const Tensor columns = blocks_of_columns();
  const auto matrix = load_matrix(columns, Orientation::out_in);
  ASSERT_EQ(matrix->rows(), kIn);
  std::vector<float> row(kOut);
  matrix->decode(3, 1, row.data());
  const std::vector<float> all = values(columns);
  EXPECT_TRUE(std::equal(row.begin(), row.end(), all.begin() + 3 * kOut));
}

TEST(Matrix, TokensApartGetWhatEachGetsAlone) {
  const std::vector<std::pair<Tensor, Orientation>> all = {
      {make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F)), Orientation::out_in},
      {make_tensor("w", {kIn, kOut}, waves(kOut * kIn, 0.7F)), Orientation::in_out},
      {quantize_to_blocks(make_tensor("w", {kOut, kIn}, waves(kOut * kIn, 0.7F)), *block_type_named("q4_0"), nullptr),
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

}  // namespace
}  // namespace poise
