#include "ops/heat_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "numeric/summary_kernels.hpp"

namespace poise {
namespace {

// Adds all numbers in runs of the given lengths, by turns, and each run with sums of its own.
template <typename Number = float>
HeatMap make_map_in_runs(const Shape& shape, std::size_t side, const std::vector<Number>& numbers,
                         const std::vector<std::size_t>& lengths) {
  const CellGrid grid(shape, side);
  std::vector<SquareSums> all;
  for (std::size_t begin = 0, turn = 0; begin < numbers.size(); ++turn) {
    const std::size_t count = std::min(lengths[turn % lengths.size()], numbers.size() - begin);
    CellSums sums = grid.make_sums(begin, begin + count);
    grid.add(
        begin, count,
        [&](std::size_t at, std::size_t length) {
          return sum_squares(std::span<const Number>(numbers).subspan(begin + at, length));
        },
        sums);
    grid.merge(sums, all);
    begin += count;
  }
  return grid.make_map(all);
}

// 3 rows and 5 columns in 2 by 2 cells: rows 0 and 1 are in the first row of cells (r * 2 / 3), columns 0 to 2 in the
// first column (j * 2 / 5).
TEST(HeatMap, CellsHaveTheRootMeanSquareOfTheirNumbers) {
  const std::vector<float> numbers = {1, 1, 1, 2, 2,  //
                                      1, 1, 1, 2, 2,  //
                                      0, 3, 0, 4, 0};
  for (const std::vector<std::size_t>& lengths : {std::vector<std::size_t>{15}, {1}, {5}, {7, 2}, {4, 1, 3}}) {
    const HeatMap map = make_map_in_runs({3, 5}, 2, numbers, lengths);
    ASSERT_EQ(map.rows, 2U);
    ASSERT_EQ(map.columns, 2U);
    const std::vector<double> expected = {1, 2, std::sqrt(3.0), std::sqrt(8.0)};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(map.rms[i], expected[i], 1e-6) << i;
  }
}

TEST(HeatMap, SmallTensorsHaveACellForEachNumber) {
  const HeatMap map = make_map_in_runs({2, 2}, 64, {1, -2, 3, -4}, {4});
  EXPECT_EQ(map.rows, 2U);
  EXPECT_EQ(map.rms, (std::vector<double>{1, 2, 3, 4}));
}

TEST(HeatMap, OtherDimensionsAreRowsAndAVectorIsARow) {
  const HeatMap cube = make_map_in_runs({2, 2, 2}, 64, {1, 2, 3, 4, 5, 6, 7, 8}, {3});
  EXPECT_EQ(cube.rows, 4U);
  EXPECT_EQ(cube.columns, 2U);
  EXPECT_EQ(cube.rms.back(), 8);
  const HeatMap vector = make_map_in_runs({9}, 2, {1, 1, 1, 1, 1, 1, 1, 1, 5}, {9});
  EXPECT_EQ(vector.rows, 1U);
  EXPECT_EQ(vector.columns, 8U);  // four times the side
}

TEST(HeatMap, ACellWithANumberThatIsNotFiniteIsNaN) {
  const HeatMap map = make_map_in_runs({2, 2}, 64, {1, NAN, INFINITY, 4}, {4});
  EXPECT_EQ(map.rms[0], 1);
  EXPECT_TRUE(std::isnan(map.rms[1]));
  EXPECT_TRUE(std::isnan(map.rms[2]));
  EXPECT_EQ(map.rms[3], 4);
}

TEST(HeatMap, TensorsWithoutNumbersHaveNone) {
  EXPECT_TRUE(CellGrid({0, 4}, 64).empty());
  EXPECT_TRUE(CellGrid({4, 0}, 64).empty());
  EXPECT_TRUE(CellGrid({}, 64).empty());
  EXPECT_TRUE(CellGrid({4, 4}, 0).empty());
  EXPECT_TRUE(CellGrid({UINT64_MAX, 1}, 64).empty());  // products would overflow
}

// The vectors' sums of float32 hold these, or a slower loop does.
TEST(HeatMap, SquaresOfHugeAndTinyNumbersAreSummed) {
  for (const float number : {1e30F, 1e-30F, 1e-40F, 2.0F}) {
    const std::vector<float> numbers(100, number);
    const double expected = 100 * std::pow(static_cast<double>(number), 2);
    EXPECT_NEAR(sum_squares(std::span(numbers)) / expected, 1, 1e-6) << number;
  }
  std::vector<float> numbers(100, 1);
  numbers[3] = NAN;
  EXPECT_TRUE(std::isnan(sum_squares(std::span<const float>(numbers))));
}

// The squares of these numbers are beyond float64.
TEST(HeatMap, CellsOfFloat64HaveNumbersOfAnySize) {
  const std::vector<double> numbers = {1.5e308, 1.5e308,   3,      0,       //
                                       3e-310,  4e-310,    1e308,  1e-310,  //
                                       1e150,   -INFINITY, 5e-324, 0};
  const HeatMap map = make_map_in_runs<double>({3, 4}, 64, numbers, {5});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers[i])) {
      EXPECT_NEAR(map.rms[i], numbers[i], 1e-12 * numbers[i]) << i;
    } else {
      EXPECT_TRUE(std::isnan(map.rms[i])) << i;
    }
  }
  const HeatMap halves = make_map_in_runs<double>({3, 4}, 2, numbers, {1});  // rows 0 and 1; columns 0 and 1
  const std::vector<double> expected = {std::sqrt(0.5) * 1.5e308, 0.5e308, NAN, 0};
  EXPECT_NEAR(halves.rms[0] / expected[0], 1, 1e-12);
  EXPECT_NEAR(halves.rms[1] / expected[1], 1, 1e-12);
  EXPECT_TRUE(std::isnan(halves.rms[2]));
  EXPECT_GE(halves.rms[3], 0);
  EXPECT_LT(halves.rms[3], 1e-323);
}

// bfloat16 0x3fc0 is 1.5, float16 0x3e00 too.
TEST(HeatMap, StoredNumbersHaveTheSameSums) {
  for (const std::size_t count : {1U, 15U, 16U, 33U, 100U}) {
    std::vector<std::byte> bf16;
    std::vector<std::byte> f16;
    for (std::size_t i = 0; i < count; ++i) {
      bf16.insert(bf16.end(), {std::byte{0xc0}, std::byte{0x3f}});
      f16.insert(f16.end(), {std::byte{0x00}, std::byte{0x3e}});
    }
    EXPECT_EQ(sum_stored_squares(DType::bf16, bf16), 2.25 * static_cast<double>(count));
    EXPECT_EQ(sum_stored_squares(DType::f16, f16), 2.25 * static_cast<double>(count));
  }
}

}  // namespace
}  // namespace poise
