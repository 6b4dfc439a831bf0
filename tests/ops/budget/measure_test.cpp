// The errors of types, worked out by hand.
#include "ops/budget/budget.hpp"

#include <bit>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bytes/byte_writer.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kAnySize = UINT64_MAX;
constexpr float kOdd = 1 + 0x1p-9F;  // fits float16, and rounds to 1 as bfloat16

Tensor make_matrix(Shape shape, const std::vector<float>& numbers) {
  ByteWriter bytes;
  for (const float number : numbers) bytes.append_f32(number);
  return make_dense("a", std::move(shape), DType::f32,
                    make_memory_blob({bytes.bytes().begin(), bytes.bytes().end()}, "a"));
}

// Returns the error of a type; -1 if it is left out.
double find_error(const std::vector<TypeCandidate>& candidates, const std::string& type) {
  for (const TypeCandidate& candidate : candidates) {
    if (to_string(*candidate.type) == type) return candidate.error;
  }
  return -1;
}

TEST(MeasureTypes, FindsRelativeSquaredErrors) {
  const auto candidates =
      measure_types(make_matrix({2, 32}, std::vector<float>(64, kOdd)), nullptr, kAnySize, true, false);
  EXPECT_EQ(find_error(candidates, "f16"), 0);
  EXPECT_DOUBLE_EQ(find_error(candidates, "bf16"), 0x1p-18 / (static_cast<double>(kOdd) * static_cast<double>(kOdd)));
  EXPECT_EQ(find_error(candidates, "q4_k"), -1);  // a row is shorter than a block
  EXPECT_EQ(find_error(measure_types(make_matrix({2, 32}, std::vector<float>(64, 1)), nullptr, kAnySize, false, false),
                       "bf16"),
            -1);
}

TEST(MeasureTypes, CountsTheBytesOfBlocks) {
  // The scale of q8_0 is 1, and the codes are the numbers.
  std::vector<float> numbers(512, 3);
  for (std::size_t i = 0; i < numbers.size(); i += 32) numbers[i] = 127;
  const auto candidates = measure_types(make_matrix({2, 256}, numbers), nullptr, kAnySize, true, false);
  EXPECT_EQ(find_error(candidates, "q8_0"), 0);
  EXPECT_GT(find_error(candidates, "q2_k"), find_error(candidates, "q6_k"));
  for (const TypeCandidate& candidate : candidates) {
    const std::string type = to_string(*candidate.type);
    if (type == "q8_0" || type == "q2_k") {
      EXPECT_EQ(candidate.bytes, type == "q8_0" ? 2U * 8 * 34 : 2U * 84);
    }
  }
  // A limit of bytes leaves only types that are smaller.
  for (const TypeCandidate& candidate : measure_types(make_matrix({2, 256}, numbers), nullptr, 2 * 144, true, false))
    EXPECT_LT(candidate.bytes, 2U * 144);
}

TEST(MeasureTypes, HasTypesThatNeedAnImportanceMatrixOnlyWithOne) {
  std::vector<float> numbers(256);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 13) - 6;
  const Tensor matrix = make_matrix({1, 256}, numbers);
  const auto importance = std::make_shared<const std::vector<float>>(256, 1.0F);
  const auto without = measure_types(matrix, nullptr, kAnySize, true, false);
  const auto with = measure_types(matrix, importance, kAnySize, true, true);
  for (const std::string type : {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs"}) {
    EXPECT_EQ(find_error(without, type), -1) << type;
    EXPECT_GT(find_error(with, type), 0) << type;
  }
  for (const std::string type : {"iq3_s", "iq4_xs", "q2_k", "q8_0"}) {
    EXPECT_GT(find_error(without, type), 0) << type;
    EXPECT_GT(find_error(with, type), 0) << type;
  }
  EXPECT_EQ(find_error(without, "tq1_0"), -1);
}

TEST(MeasureTypes, WeighsColumns) {
  std::vector<float> numbers(64, 1);
  for (std::size_t i = 1; i < numbers.size(); i += 2) numbers[i] = kOdd;
  const auto measure = [&](float even, float odd, std::size_t matrices) {
    std::vector<float> weights(32 * matrices, even);
    for (std::size_t i = 1; i < weights.size(); i += 2) weights[i] = odd;
    const auto importance = std::make_shared<const std::vector<float>>(weights);
    return find_error(
        measure_types(make_matrix({matrices, 2 / matrices, 32}, numbers), importance, kAnySize, true, false), "bf16");
  };
  const double odd = static_cast<double>(kOdd);
  EXPECT_NEAR(measure(1, 1, 1), 0x1p-18 / (1 + odd * odd), 1e-12);
  EXPECT_NEAR(measure(1, 4, 1), 4 * 0x1p-18 / (1 + 4 * odd * odd), 1e-12);
  EXPECT_NEAR(measure(1, 4, 2), 4 * 0x1p-18 / (1 + 4 * odd * odd), 1e-12);
  EXPECT_EQ(measure(1, 0, 1), 0);
}

TEST(MeasureTypes, LeavesOutTypesWithoutFiniteNumbers) {
  std::vector<float> numbers(32, 1);
  numbers[5] = 1e30F;
  const auto candidates = measure_types(make_matrix({1, 32}, numbers), nullptr, kAnySize, true, false);
  EXPECT_EQ(find_error(candidates, "f16"), -1);
  EXPECT_EQ(find_error(candidates, "q8_0"), -1);  // its scale is a float16
  EXPECT_GT(find_error(candidates, "bf16"), 0);
  numbers[6] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(measure_types(make_matrix({1, 32}, numbers), nullptr, kAnySize, true, false), testing::IsEmpty());
  EXPECT_THAT(measure_types(make_matrix({0, 32}, {}), nullptr, kAnySize, true, false), testing::IsEmpty());
}

// A row of a large matrix counts as the rows around it.
TEST(MeasureTypes, TakesRowsAtEvenDistances) {
  constexpr std::uint64_t kRows = 1 << 14;
  std::vector<float> numbers(kRows * 64, 1);
  for (std::size_t i = kRows / 2 * 64; i < numbers.size(); ++i) numbers[i] = kOdd;
  const Tensor matrix = make_matrix({kRows, 64}, numbers);
  EXPECT_EQ(count_sample_bytes(matrix), std::uint64_t{4} << 18);
  const double odd = static_cast<double>(kOdd);
  EXPECT_NEAR(find_error(measure_types(matrix, nullptr, kAnySize, true, false), "bf16"), 0x1p-18 / (1 + odd * odd),
              1e-12);
}

}  // namespace
}  // namespace poise
