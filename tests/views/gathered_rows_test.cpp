// Gathered rows. Element (r, c) of matrix m is 1000 m + 10 r + c, so that expected numbers follow by hand.
#include "views/gathered_rows.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/values.hpp>

#include "codec/block_type.hpp"
#include "tensor/block_layout.hpp"

namespace poise {
namespace {

using testing::ElementsAre;

Tensor make_matrix(unsigned number, std::uint64_t rows, std::uint64_t columns) {
  std::vector<float> numbers;
  for (std::uint64_t r = 0; r < rows; ++r) {
    for (std::uint64_t c = 0; c < columns; ++c) numbers.push_back(static_cast<float>(1000 * number + 10 * r + c));
  }
  return make_tensor("x", {rows, columns}, numbers);
}

RowSources list(std::initializer_list<std::vector<RowSource>> rows) {
  RowSources sources;
  for (const auto& row : rows) sources.add(row);
  return sources;
}

std::vector<float> read_floats(const Blob& blob) {
  std::vector<float> numbers(blob.size() / sizeof(float));
  blob.read(0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

TEST(GatheredRows, OfSeveralMatricesAndMeans) {
  const BlobPtr rows = gather_rows({make_matrix(0, 4, 2), make_matrix(1, 3, 2)},
                                   list({{{0, 2}}, {{0, 3}}, {{1, 0}}, {{0, 1}, {1, 2}}, {{0, 2}}}));
  EXPECT_THAT(read_floats(*rows), ElementsAre(20, 21, 30, 31, 1000, 1001, 515, 516, 20, 21));
  EXPECT_TRUE(rows->seekable());
  std::array<float, 3> part = {};
  rows->read(5 * sizeof(float), std::as_writable_bytes(std::span(part)));
  EXPECT_THAT(part, ElementsAre(1001, 515, 516));
}

TEST(GatheredRows, OfAVector) {
  const Tensor vector = make_tensor("x", {3}, std::vector<float>{1, 2, 4});
  EXPECT_THAT(read_floats(*gather_rows({vector}, list({{{0, 2}}, {{0, 0}}, {{0, 1}, {0, 2}}}))), ElementsAre(4, 1, 3));
}

TEST(GatheredRows, WithoutColumns) { EXPECT_EQ(gather_rows({make_matrix(0, 2, 0)}, list({{{0, 1}}}))->size(), 0U); }

// The mean of the largest numbers is added without an overflow.
TEST(GatheredRows, MeanOfLargeNumbers) {
  const Tensor large = make_tensor("x", {2, 1}, std::vector<float>{3e38F, 3e38F});
  EXPECT_THAT(read_floats(*gather_rows({large}, list({{{0, 0}, {0, 1}}}))), ElementsAre(3e38F));
}

TEST(GatheredRows, DecodesRowsOfBlocks) {
  // Blocks of q8_0: a float16 scale, here 0.5 (0x3800) and 2 (0x4000), and 32 codes.
  std::vector<std::byte> bytes;
  for (const int scale : {0x38, 0x40}) {
    bytes.push_back(std::byte{0});
    bytes.push_back(static_cast<std::byte>(scale));
    for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<std::byte>(i));
  }
  const Tensor blocks =
      make_blocks("x", {2, 32}, *find_named_block_type("q8_0"), make_memory_blob(std::move(bytes), "memory"));
  const std::vector<float> numbers = read_floats(*gather_rows({blocks}, list({{{0, 1}}, {{0, 0}}, {{0, 0}, {0, 1}}})));
  EXPECT_EQ(numbers[3], 6);
  EXPECT_EQ(numbers[32 + 3], 1.5);
  EXPECT_EQ(numbers[64 + 3], 3.75);
}

// Holds numbers that can only be read from front to back, and counts the passes.
class BackwardsRefused final : public Blob {
 public:
  explicit BackwardsRefused(std::uint64_t elements) : elements_(elements) {}
  std::uint64_t size() const override { return elements_ * sizeof(float); }
  bool seekable() const override { return false; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset == 0) ++passes;
    EXPECT_TRUE(offset == 0 || offset == next_) << offset;
    next_ = offset + out.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto number = static_cast<float>((offset + i) / sizeof(float) % 1'000'003);
      out[i] = std::bit_cast<std::array<std::byte, sizeof(float)>>(number)[(offset + i) % sizeof(float)];
    }
  }
  mutable unsigned passes = 0;

 private:
  std::uint64_t elements_;
  mutable std::uint64_t next_ = 0;
};

// 80 MB of rows in reverse order. 64 MiB are kept, so there are two passes.
TEST(GatheredRows, ReadsStreamsFromFrontToBack) {
  constexpr std::uint32_t kRows = 20'000;
  constexpr std::uint64_t kColumns = 1000;
  const auto blob = std::make_shared<BackwardsRefused>(kRows * kColumns);
  RowSources reversed;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const std::array<RowSource, 2> places = {{{0, kRows - 1 - row}, {0, 0}}};
    reversed.add(std::span(places).first(row == 7 ? 2 : 1));
  }
  const BlobPtr rows = gather_rows({make_dense("x", {kRows, kColumns}, DType::f32, blob)}, std::move(reversed));
  EXPECT_FALSE(rows->seekable());
  std::vector<float> row(kColumns);
  for (std::uint64_t i = 0; i < kRows; ++i) {
    rows->read(i * kColumns * sizeof(float), std::as_writable_bytes(std::span(row)));
    const auto expected = [&](std::uint64_t c) {
      const auto at = [&](std::uint64_t r) { return static_cast<double>((r * kColumns + c) % 1'000'003); };
      return i == 7 ? (at(kRows - 1 - i) + at(0)) / 2 : at(kRows - 1 - i);
    };
    ASSERT_EQ(row[0], static_cast<float>(expected(0))) << i;
    ASSERT_EQ(row[999], static_cast<float>(expected(999))) << i;
  }
  EXPECT_EQ(blob->passes, 2U);
}

}  // namespace
}  // namespace poise
