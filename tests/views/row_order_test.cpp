#include "views/row_order.hpp"

#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace poise {
namespace {

BlobPtr letters(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return make_memory_blob({bytes.begin(), bytes.end()}, "letters");
}

std::string text_of(const Blob& blob, std::uint64_t offset, std::size_t count) {
  std::string text(count, ' ');
  blob.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(RowOrder, EvenRowsOfAHeadThenOddOnes) {
  const BlobPtr pairs = letters("A1B2C3D4E5F6a1b2c3d4e5f6");
  const BlobPtr halves = reorder_rows(pairs, 2, 6, RowOrder::halves);
  ASSERT_EQ(halves->size(), 24U);
  EXPECT_EQ(text_of(*halves, 0, 24), "A1C3E5B2D4F6a1c3e5b2d4f6");
  EXPECT_EQ(text_of(*halves, 3, 5), "3E5B2") << "parts of rows";
  const BlobPtr again = reorder_rows(letters("A1C3E5B2D4F6a1c3e5b2d4f6"), 2, 6, RowOrder::pairs);
  EXPECT_EQ(text_of(*again, 0, 24), "A1B2C3D4E5F6a1b2c3d4e5f6");
}

TEST(RowOrder, BackAgainIsTheBlobItself) {
  const BlobPtr pairs = letters("abcdefgh");
  const BlobPtr halves = reorder_rows(pairs, 1, 4, RowOrder::halves);
  EXPECT_EQ(BlobPtr(reorder_rows(halves, 1, 4, RowOrder::pairs)), pairs);
  const BlobPtr others = reorder_rows(halves, 1, 8, RowOrder::pairs);
  EXPECT_EQ(text_of(*others, 0, 8), "aecgbfdh") << "of acbdegfh";
}

TEST(RowOrder, HalvesHaveTheRowsAsTheyAreStored) {
  const BlobPtr pairs = letters("abcdefgh");
  EXPECT_EQ(pairs->stored_as(), nullptr);
  const BlobPtr halves = reorder_rows(pairs, 2, 4, RowOrder::halves);
  const StoredAs* const stored = halves->stored_as();
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(stored->change, StoredAs::Change::rows_interleaved);
  EXPECT_EQ(stored->blob, pairs);
  EXPECT_EQ(stored->row_bytes, 2U);
  EXPECT_EQ(stored->head_rows, 4U);
  EXPECT_EQ(find_change(*halves, StoredAs::Change::rows_interleaved), stored);
  EXPECT_EQ(find_change(*halves, StoredAs::Change::transposed), nullptr);
  EXPECT_EQ(reorder_rows(letters("abcdefgh"), 2, 4, RowOrder::pairs)->stored_as(), nullptr) << "no file has it";
}

TEST(RowOrder, HeadsHaveAnEvenNumberOfRows) {
  EXPECT_EQ(count_head_rows(96, 4), 24U);
  EXPECT_FALSE(count_head_rows(96, 0));
  EXPECT_FALSE(count_head_rows(96, 5));
  EXPECT_FALSE(count_head_rows(9, 3));
}

}  // namespace
}  // namespace poise
