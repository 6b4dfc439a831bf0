// Expected numbers are worked out by hand; statistics_against_numpy.py compares tensors of every type with NumPy.
#include <poise/statistics.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "views/sparse.hpp"

namespace poise {
namespace {

Tensor make_stored(std::string name, Shape shape, DType dtype, const std::vector<std::uint8_t>& bytes) {
  std::vector<std::byte> data(bytes.size());
  std::memcpy(data.data(), bytes.data(), bytes.size());
  return make_dense(std::move(name), std::move(shape), dtype, make_memory_blob(std::move(data), "numbers"));
}

TensorStatistics compute_one(Tensor tensor) {
  Model model;
  model.add(std::move(tensor));
  return compute_statistics(model).tensors.at(0);
}

// Returns numbers that repeat; some are 100 times as large, more of them in the second half.
std::vector<float> make_numbers(std::size_t count) {
  std::vector<float> numbers(count);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    numbers[i] = static_cast<float>(state >> 16) / 65536 - 0.5F;
    if (state % (i < count / 2 ? 5003 : 23) == 0) numbers[i] *= 100;
  }
  return numbers;
}

TEST(Statistics, OfAFewNumbers) {
  const TensorStatistics found = compute_one(make_tensor("w", {2, 3}, {0, 1, -1, 2, -2, 6}));
  EXPECT_EQ(found.type, "f32");
  EXPECT_EQ(found.elements, 6U);
  EXPECT_EQ(found.min, -2);
  EXPECT_EQ(found.max, 6);
  EXPECT_DOUBLE_EQ(found.mean, 1);
  EXPECT_DOUBLE_EQ(found.deviation, std::sqrt(40.0 / 6));
  EXPECT_DOUBLE_EQ(found.rms, std::sqrt(46.0 / 6));
  EXPECT_EQ(found.zeros, 1U);
  EXPECT_EQ(found.outliers, 0U);
  ASSERT_TRUE(found.largest_channel);
  EXPECT_EQ(found.largest_channel->index, 1U);
  EXPECT_DOUBLE_EQ(found.largest_channel->rms, std::sqrt(44.0 / 3));
  ASSERT_TRUE(found.histogram);
  EXPECT_EQ(found.histogram->low, -2);
  EXPECT_EQ(found.histogram->high, 6);
  EXPECT_THAT(found.histogram->counts, testing::ElementsAre(1, 1, 1, 1, 1, 0, 0, 1));
}

// The threads that run first must not matter, whatever they find.
TEST(Statistics, AreTheSameOnOneThread) {
  Model model;
  model.add(make_tensor("a", {1500, 1000}, make_numbers(1'500'000)));
  model.add(make_tensor("b", {2, 400'000}, make_numbers(800'000)));
  const ModelStatistics many = compute_statistics(model);
  const oneapi::tbb::global_control one(oneapi::tbb::global_control::max_allowed_parallelism, 1);
  const ModelStatistics few = compute_statistics(model);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(many.tensors[i].mean, few.tensors[i].mean);
    EXPECT_EQ(many.tensors[i].deviation, few.tensors[i].deviation);
    EXPECT_EQ(many.tensors[i].largest_channel->rms, few.tensors[i].largest_channel->rms);
    EXPECT_EQ(many.tensors[i].histogram->counts, few.tensors[i].histogram->counts);
    EXPECT_EQ(many.tensors[i].outliers, few.tensors[i].outliers);
  }
}

// A piece has more far numbers than it collects, so it is read again.
TEST(Statistics, CountOutliersOfEveryPiece) {
  const std::vector<float> numbers = make_numbers(1'500'000);
  const TensorStatistics found = compute_one(make_tensor("w", {1'500'000}, numbers));
  std::uint64_t outliers = 0;
  for (const float number : numbers) {
    if (std::abs(static_cast<double>(number) - found.mean) > 6 * found.deviation) ++outliers;
  }
  EXPECT_GT(outliers, 10'000U);
  EXPECT_EQ(found.outliers, outliers);
}

TEST(Statistics, OfIntegersAndBooleans) {
  const TensorStatistics bytes = compute_one(make_stored("w", {4}, DType::i8, {0, 1, 0xff, 0x80}));
  EXPECT_EQ(bytes.min, -128);
  EXPECT_EQ(bytes.max, 1);
  EXPECT_DOUBLE_EQ(bytes.mean, -32);
  EXPECT_EQ(bytes.subnormals, 0U);
  const TensorStatistics bits = compute_one(make_stored("w", {4}, DType::boolean, {0, 1, 1, 1}));
  EXPECT_DOUBLE_EQ(bits.mean, 0.75);
  EXPECT_EQ(bits.zeros, 1U);
  EXPECT_THROW(compute_one(make_stored("w", {4}, DType::boolean, {0, 1, 2, 1})), Error);
}

// Four standard deviations are more than the largest float32.
TEST(Statistics, InfinitiesAreNoNumbersNextToTheLargestOnes) {
  std::vector<float> numbers(32);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 2 == 0 ? -1e38F : 1e38F;
  numbers[31] = std::numeric_limits<float>::infinity();
  const TensorStatistics found = compute_one(make_tensor("w", {32}, numbers));
  EXPECT_EQ(found.infinities, 1U);
  EXPECT_EQ(found.max, static_cast<double>(1e38F));
  EXPECT_DOUBLE_EQ(found.mean, static_cast<double>(-1e38F) / 31);
}

TEST(Statistics, OfTensorsWithoutNumbers) {
  const TensorStatistics empty = compute_one(make_tensor("w", {0, 3}, {}));
  EXPECT_EQ(empty.problem, "");
  EXPECT_TRUE(std::isnan(empty.mean));
  EXPECT_FALSE(empty.largest_channel);
  EXPECT_FALSE(empty.histogram);
  const TensorStatistics complex = compute_one(make_stored("w", {1}, DType::complex64, std::vector<std::uint8_t>(8)));
  EXPECT_EQ(complex.problem, "it is stored as complex64, which Poise cannot decode to real numbers");
  Stored stored{{make_memory_blob(std::vector<std::byte>(4), "file")->stored()->source, 0, 4}};
  stored.encoding = "lz4";
  const TensorStatistics packed =
      compute_one(make_dense("w", {1}, DType::f32, make_opaque_blob(stored, 4, "the encoding is unknown")));
  EXPECT_EQ(packed.problem, "data: the encoding lz4 is unknown");
}

// Short rows, long ones, and float64 have loops of their own.
TEST(Statistics, ChannelsHaveFiniteNumbers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::uint64_t length : {1U, 3U, 300U}) {
    const std::vector<float> nans(length, kNan);
    std::vector<float> numbers = nans;
    numbers.resize(2 * length);
    const TensorStatistics none = compute_one(make_tensor("w", {1, length}, nans));
    EXPECT_FALSE(none.largest_channel);
    EXPECT_EQ(none.nans, length);
    const TensorStatistics zeros = compute_one(make_tensor("w", {2, length}, numbers));
    ASSERT_TRUE(zeros.largest_channel);
    EXPECT_EQ(zeros.largest_channel->index, 1U);
    EXPECT_EQ(zeros.largest_channel->rms, 0);
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::byte> bytes(sizeof(nan));
  std::memcpy(bytes.data(), &nan, sizeof(nan));
  EXPECT_FALSE(compute_one(make_dense("w", {1}, DType::f64, make_memory_blob(bytes, "number"))).largest_channel);
}

TEST(Statistics, ChannelsOfSparseTensorsHaveFiniteNumbers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto compute_sparse = [](const Shape& shape, const std::vector<float>& numbers) {
    return compute_one(*sparsify(make_tensor("w", shape, numbers), Layout::sparse_csr, 0));
  };
  EXPECT_FALSE(compute_sparse({2, 1}, {kNan, kNan}).largest_channel);
  const TensorStatistics zeros = compute_sparse({3, 2}, {kNan, kNan, 0, 0, 0, 0});
  ASSERT_TRUE(zeros.largest_channel);
  EXPECT_EQ(zeros.largest_channel->index, 1U);
  const TensorStatistics later = compute_sparse({3, 2}, {kNan, kNan, kNan, kNan, 0, 0});
  ASSERT_TRUE(later.largest_channel);
  EXPECT_EQ(later.largest_channel->index, 2U);
}

TEST(Statistics, OfCodesAreThoseOfTheNumbers) {
  Tensor numbers = make_tensor("w", {64, 256}, make_numbers(64 * 256));
  const Tensor codes = quantized(numbers, *stored_type_from_name("q4_k"));
  const TensorStatistics found = compute_one(codes);
  const TensorStatistics expected = compute_one(make_tensor("w", {64, 256}, values(codes)));
  EXPECT_EQ(found.type, "q4_k");
  EXPECT_EQ(found.mean, expected.mean);
  EXPECT_EQ(found.deviation, expected.deviation);
  EXPECT_EQ(found.zeros, expected.zeros);
}

TEST(Statistics, OfSelectedTensors) {
  Model model;
  model.add(make_tensor("a", {1}, {1}));
  model.add(make_tensor("b", {1}, {2}));
  const ModelStatistics found = compute_statistics(model, {.only = {"*"}, .skip = {"a"}});
  ASSERT_EQ(found.tensors.size(), 1U);
  EXPECT_EQ(found.tensors[0].name, "b");
  EXPECT_EQ(found.tensors[0].mean, 2);
  EXPECT_EQ(found.tensors[0].deviation, 0);
  EXPECT_THROW(compute_statistics(model, {.only = {"c"}}), Error);
}

TEST(Statistics, StopWhereProgressIsRefused) {
  Model model;
  model.add(make_tensor("a", {4}, {1, 2, 3, 4}));
  try {
    compute_statistics(model, {.progress = [](const ProgressEvent& event) { return event.total != 16; }});
    FAIL() << "nothing is thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
}

}  // namespace
}  // namespace poise
