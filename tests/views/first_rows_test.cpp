// Beginnings of matrices. Expected bytes are counted by hand: byte or number i is i.
#include "views/first_rows.hpp"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/stored_type.hpp>
#include <poise/values.hpp>

#include "codec/block_type.hpp"
#include "tensor/block_layout.hpp"
#include "views/affine.hpp"
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
  const auto range = rows.require("data").blob->raw();
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
  const Tensor columns = keep_first_columns(transposed(blocks), 2);
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

}  // namespace
}  // namespace poise
