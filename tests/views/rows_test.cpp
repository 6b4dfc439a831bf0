// Rows of stacks. Expected numbers are counted by hand: number i of a stack is i.
#include "views/row_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "support/errors.hpp"
#include "tensor/block_layout.hpp"
#include "views/mx.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

using support::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor counted(const Shape& shape) {
  std::vector<float> numbers(*element_count(shape));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return make_tensor("x", shape, numbers);
}

BlobPtr counted_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return make_memory_blob(std::move(bytes), "memory");
}

std::vector<unsigned> bytes_of(const Tensor& tensor, std::string_view role) {
  std::vector<unsigned> all;
  for (const std::byte byte : read_all(*tensor.require(role).blob)) all.push_back(std::to_integer<unsigned>(byte));
  return all;
}

TEST(Rows, EveryRowOfNumbers) {
  const Tensor rows = select_rows(counted({2, 4, 2}), 1, 1, 2);
  EXPECT_EQ(rows.shape, Shape({2, 2}));
  EXPECT_THAT(values(rows), ElementsAre(10, 11, 14, 15));
  const Tensor of_vectors = select_rows(counted({2, 4}), 1, 1, 2);
  EXPECT_EQ(of_vectors.shape, Shape({2}));
  EXPECT_THAT(values(of_vectors), ElementsAre(5, 7));
}

TEST(Rows, InterleavedNumbers) {
  const Tensor rows = interleave_rows(counted({4, 2, 2}), 2);
  EXPECT_EQ(rows.shape, Shape({2, 4, 2}));
  EXPECT_THAT(values(rows), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  const Tensor of_vectors = interleave_rows(counted({2, 3}), 2);
  EXPECT_EQ(of_vectors.shape, Shape({1, 6}));
  EXPECT_THAT(values(of_vectors), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Rows, CodesStayInWholeRows) {
  const Tensor stack = make_mxfp4("x", {2, 2, 32}, counted_bytes(64), counted_bytes(4));
  const Tensor row = select_rows(stack, 1, 1, 2);
  EXPECT_TRUE(is_mxfp4(row));
  EXPECT_EQ(row.shape, Shape({1, 32}));
  EXPECT_EQ(bytes_of(row, "data").front(), 48U);
  EXPECT_THAT(bytes_of(row, "scales"), ElementsAre(3));
  const Tensor blocks =
      interleave_rows(make_blocks("x", {2, 2, 32}, *find_named_block_type("mxfp4"), counted_bytes(68)), 2);
  EXPECT_EQ(blocks.shape, Shape({1, 4, 32}));
  const auto bytes = bytes_of(blocks, "data");
  EXPECT_THAT((std::vector{bytes[0], bytes[17], bytes[34], bytes[51]}), ElementsAre(0, 34, 17, 51));
}

// Files have the parts in any order.
TEST(Rows, CodesAreFoundByTheirRoles) {
  Tensor stack = make_mxfp4("x", {2, 2, 32}, counted_bytes(64), counted_bytes(4));
  std::swap(stack.parts[0], stack.parts[1]);
  const Tensor row = select_rows(stack, 1, 1, 2);
  EXPECT_EQ(bytes_of(row, "data").front(), 48U);
  EXPECT_THAT(bytes_of(row, "scales"), ElementsAre(3));
}

TEST(Rows, NumbersOfLessThanAByteBecomeFloat32) {
  const std::vector<std::byte> codes = {std::byte{0x10}, std::byte{0x32}};  // 0, 0.5, 1, 1.5
  const Tensor vector = make_dense("x", {4}, DType::f4_e2m1, make_memory_blob(codes, "memory"));
  const Tensor both = stack_tensors({vector, vector});
  EXPECT_EQ(both.require("data").dtype, DType::f32);
  EXPECT_THAT(values(both), ElementsAre(0, 0.5F, 1, 1.5F, 0, 0.5F, 1, 1.5F));
}

TEST(Rows, StacksHaveACommonType) {
  const Tensor whole = make_tensor("x", {2}, std::vector<float>{1, 2});
  const Tensor other = make_dense(
      "y", {2}, DType::f16, make_memory_blob({std::byte{0}, std::byte{0x42}, std::byte{0}, std::byte{0x44}}, "memory"));
  EXPECT_EQ(stack_tensors({other, other}).require("data").dtype, DType::f16);
  const Tensor both = stack_tensors({whole, other});
  EXPECT_EQ(both.shape, Shape({2, 2}));
  EXPECT_THAT(values(both), ElementsAre(1, 2, 3, 4));
}

TEST(Rows, TensorsWithoutNumbersHaveNoRows) {
  const Tensor bytes = make_dense("y", {2}, DType::u8, counted_bytes(2));
  EXPECT_THAT(error_of([&] { make_dense_numbers(bytes); }).message(),
              HasSubstr("tensor y: it is stored as u8, expected floating-point numbers"));
}

TEST(Rows, MatricesOfAStackAreTransposed) {
  const Tensor turned = transpose_view(counted({2, 2, 3}));
  EXPECT_EQ(turned.shape, Shape({2, 3, 2}));
  EXPECT_THAT(values(turned), ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11));
  EXPECT_EQ(turned.parts.front().blob->stored_as(), nullptr) << "of one matrix alone";
}

TEST(Rows, AMatrixTransposedTwiceIsItself) {
  const Tensor matrix = counted({2, 3});
  Tensor turned = transpose_view(matrix);
  const StoredAs* const stored = find_change(*turned.parts.front().blob, StoredAs::Change::transposed);
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(stored->blob, matrix.parts.front().blob);
  EXPECT_EQ(transpose_view(turned).parts.front().blob, matrix.parts.front().blob);
  turned.shape = {2, 3};  // the same elements in rows of another length: 0 3 1 / 4 2 5
  EXPECT_THAT(values(transpose_view(turned)), ElementsAre(0, 4, 3, 2, 1, 5));
}

}  // namespace
}  // namespace poise
