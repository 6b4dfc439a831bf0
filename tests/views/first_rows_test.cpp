// Beginnings of matrices. Expected bytes are counted by hand: byte or number i is i.
#include "views/first_rows.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/stored_type.hpp>
#include <poise/values.hpp>

#include "codec/block_type.hpp"
#include "tensor/block_layout.hpp"
#include "views/affine.hpp"
#include "views/mx.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

using testing::ElementsAre;

Tensor make_counted(const Shape& shape) {
  std::vector<float> numbers(*element_count(shape));
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return make_tensor("x", shape, numbers);
}

BlobPtr make_counted_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return make_memory_blob(std::move(bytes), "memory");
}

TEST(FirstRows, OfNumbers) {
  const Tensor rows = keep_first_rows(make_counted({3, 2}), 2);
  EXPECT_EQ(rows.shape, Shape({2, 2}));
  EXPECT_THAT(values(rows), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values(keep_first_rows(make_counted({4}), 3)), ElementsAre(0, 1, 2));
  const Tensor columns = keep_first_columns(make_counted({2, 3}), 2);
  EXPECT_EQ(columns.shape, Shape({2, 2}));
  EXPECT_THAT(values(columns), ElementsAre(0, 1, 3, 4));
}

// Stored rows stay a range of the file, so that the kernel can copy them.
TEST(FirstRows, AreARangeOfTheFile) {
  const Tensor rows = keep_first_rows(make_counted({3, 2}), 2);
  const auto range = rows.require("data").blob->raw_range();
  ASSERT_TRUE(range);
  EXPECT_EQ(range->offset, 0U);
  EXPECT_EQ(range->length, 16U);
}

TEST(FirstRows, OfBlocksKeepTheirCodes) {
  const BlockType& q8 = *find_named_block_type("q8_0");
  const Tensor blocks = make_blocks("x", {3, 64}, q8, make_counted_bytes(3 * 2 * 34));
  const Tensor rows = keep_first_rows(blocks, 2);
  EXPECT_EQ(rows.shape, Shape({2, 64}));
  EXPECT_EQ(rows.layout.name(), blocks.layout.name());
  EXPECT_EQ(rows.require("data").blob->size(), 136U);
  // Blocks along columns keep theirs, too, where columns are cut.
  const Tensor columns = keep_first_columns(transpose_view(blocks), 2);
  EXPECT_EQ(columns.shape, Shape({64, 2}));
  EXPECT_EQ(read_all(*columns.require("data").blob), read_all(*rows.require("data").blob));
}

// A row of three codes of 4 bits ends within a byte. With one scale for all numbers, 7 is the largest code.
TEST(FirstRows, OfCodesThatShareBytesBecomeNumbers) {
  const StoredType qint4 = *stored_type_from_name("qint4");
  const Tensor odd = quantize(make_tensor("x", {2, 3}, std::vector<float>{1, 2, 3, 5, 6, 7}), qint4);
  const Tensor numbers = keep_first_rows(odd, 1);
  EXPECT_EQ(numbers.layout, Layout::dense);
  EXPECT_THAT(values(numbers), ElementsAre(1, 2, 3));
  const Tensor even = quantize(make_tensor("x", {2, 2}, std::vector<float>{1, 2, 6, 7}), qint4);
  const Tensor codes = keep_first_rows(even, 1);
  EXPECT_EQ(codes.layout, Layout::affine);
  EXPECT_THAT(values(codes), ElementsAre(1, 2));
}

// Numbers of four bits: code i of f4_e2m1 is 0, 0.5, 1, 1.5, 2, 3, 4, 6 for i of 0 to 7, the even one in the low half.
TEST(FirstRows, OfNumbersThatShareBytesBecomeFloat32) {
  const std::vector<std::byte> codes = {std::byte{0x10}, std::byte{0x32}, std::byte{0x54}};
  const Tensor matrix = make_dense("x", {2, 3}, DType::f4_e2m1, make_memory_blob(codes, "memory"));
  const Tensor rows = keep_first_rows(matrix, 1);
  EXPECT_EQ(rows.require("data").dtype, DType::f32);
  EXPECT_EQ(rows.shape, Shape({1, 3}));
  EXPECT_THAT(values(rows), ElementsAre(0, 0.5F, 1));
  EXPECT_THAT(values(keep_first_columns(matrix, 2)), ElementsAre(0, 0.5F, 1.5F, 2));
  const Tensor vector = make_dense("x", {6}, DType::f4_e2m1, make_memory_blob(codes, "memory"));
  EXPECT_THAT(values(keep_first_rows(vector, 5)), ElementsAre(0, 0.5F, 1, 1.5F, 2));
}

// The first elements of a vector may end within a block.
TEST(FirstRows, OfVectorsOfBlocksBecomeNumbers) {
  const BlockType& q8 = *find_named_block_type("q8_0");
  std::vector<std::byte> bytes(2 * 34);
  for (std::size_t block = 0; block < 2; ++block) {
    bytes[block * 34 + 1] = std::byte{0x3c};  // the scale 1 as f16
    for (std::size_t i = 0; i < 32; ++i) bytes[block * 34 + 2 + i] = static_cast<std::byte>(block * 32 + i);
  }
  const Tensor vector = make_blocks("x", {64}, q8, make_memory_blob(bytes, "memory"));
  const Tensor first = keep_first_rows(vector, 33);
  EXPECT_EQ(first.layout, Layout::dense);
  EXPECT_EQ(first.shape, Shape({33}));
  const std::vector<float> all = values(vector);
  EXPECT_EQ(values(first), std::vector<float>(all.begin(), all.begin() + 33));
}

TEST(FirstRows, OfVectorsOfMxfp4BecomeNumbers) {
  const Tensor vector = make_mxfp4("x", {64}, make_counted_bytes(32), make_counted_bytes(2));
  const Tensor first = keep_first_rows(vector, 33);
  EXPECT_EQ(first.layout, Layout::dense);
  const std::vector<float> all = values(vector);
  EXPECT_EQ(values(first), std::vector<float>(all.begin(), all.begin() + 33));
}

// Files have the parts in any order.
TEST(FirstRows, OfMxfp4FindPartsByTheirRoles) {
  Tensor matrix = make_mxfp4("x", {3, 32}, make_counted_bytes(48), make_counted_bytes(3));
  std::swap(matrix.parts[0], matrix.parts[1]);
  const Tensor rows = keep_first_rows(matrix, 2);
  EXPECT_TRUE(is_mxfp4(rows));
  EXPECT_EQ(rows.shape, Shape({2, 32}));
  EXPECT_EQ(rows.require("data").blob->size(), 32U);
  EXPECT_EQ(rows.require("scales").blob->size(), 2U);
  const std::vector<float> all = values(matrix);
  EXPECT_EQ(values(rows), std::vector<float>(all.begin(), all.begin() + 64));
}

}  // namespace
}  // namespace poise
