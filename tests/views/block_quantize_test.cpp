// Compares stacked matrices with the same matrices by themselves, and tries numbers that no block can hold.
#include "views/affine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <poise/error.hpp>
#include <poise/stored_type.hpp>

#include "codec/block_type.hpp"
#include "support/errors.hpp"
#include "views/computed_blob.hpp"

namespace poise {
namespace {

Tensor tensor_of(Shape shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_dense("w", std::move(shape), DType::f32, make_memory_blob(std::move(bytes), "w"));
}

std::vector<std::byte> blocks(const Tensor& tensor, const char* type, Importance importance) {
  return read_all(
      *quantize_to_blocks(tensor, *find_named_block_type(type), std::move(importance)).require("data").blob);
}

// 3 matrices of 5 rows; pieces that are read do not begin where matrices do.
TEST(BlockQuantize, EachStackedMatrixHasItsWeights) {
  constexpr std::uint64_t kMatrices = 3, kRows = 5, kColumns = 256;
  std::vector<float> values;
  for (std::size_t i = 0; i < kMatrices * kRows * kColumns; ++i)
    values.push_back(std::sin(static_cast<float>(i) * 0.37F));
  std::vector<float> weights;
  for (std::size_t i = 0; i < kMatrices * kColumns; ++i) weights.push_back(static_cast<float>(i * 2654435761U % 97));
  for (const char* type : {"q4_k", "q4_0", "iq4_nl"}) {
    std::vector<std::byte> alone;
    for (std::size_t m = 0; m < kMatrices; ++m) {
      const auto of = [&](const std::vector<float>& all, std::size_t size) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(m * size);
        return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(size));
      };
      const auto encoded = blocks(tensor_of({kRows, kColumns}, of(values, kRows * kColumns)), type,
                                  std::make_shared<std::vector<float>>(of(weights, kColumns)));
      alone.insert(alone.end(), encoded.begin(), encoded.end());
    }
    const Tensor stacked = tensor_of({kMatrices, kRows, kColumns}, values);
    const Tensor made =
        quantize_to_blocks(stacked, *find_named_block_type(type), std::make_shared<std::vector<float>>(weights));
    const Blob& blob = *made.require("data").blob;
    EXPECT_EQ(read_all(blob), alone) << type;
    EXPECT_NE(blocks(stacked, type, std::make_shared<std::vector<float>>(weights.begin(), weights.begin() + kColumns)),
              alone)
        << "the weights count";
    std::vector<std::byte> piece(blob.size() / 2);
    blob.read(blob.size() / 4, piece);
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), alone.begin() + static_cast<std::ptrdiff_t>(blob.size() / 4)))
        << type;
  }
}

// The blocks of every written type hold the numbers, or it refuses them, with a measured loss or without, from a stream
// too.
TEST(BlockQuantize, BlocksThatWouldNotBeFiniteAreRefused) {
  constexpr std::uint64_t kRows = 4, kColumns = 512;
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    // 3e38 has a place in a power of two of eight bits only; 9e6 / 128 in no float16 scale of codes of eight bits. The
    // scales of nvfp4 end at 448, and IQ1 has no code above 15 scales.
    const bool refuses_9e6 = (type.elements == 32 && type.name != "mxfp4") || type.name == "nvfp4" ||
                             type.name == "iq1_s" || type.name == "iq1_m";
    for (const float outlier : {9e6F, -9e6F, 3e38F}) {
      SCOPED_TRACE(testing::Message() << type.name << " " << outlier);
      std::vector<float> values(kRows * kColumns);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 0.37F);
      const std::size_t place = 2 * kColumns + 300;
      values[place] = outlier;
      LossyBlobPtr<QuantizationError> lossy;
      const Tensor made = quantize_to_blocks(tensor_of({kRows, kColumns}, values), type, nullptr, &lossy);
      const BlobPtr blob = made.require("data").blob;
      try {
        std::vector<float> numbers(values.size());
        const auto bytes = read_all(*blob);
        type.decode(bytes.data(), numbers.size() / type.elements, numbers.data());
        for (const float number : numbers) ASSERT_TRUE(std::isfinite(number));
        EXPECT_TRUE(outlier == 3e38F ? type.name == "mxfp4" : !refuses_9e6);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unsupported);
        EXPECT_THAT(error.what(), testing::HasSubstr("tensor w: block " + std::to_string(place / type.elements) + " "));
        ASSERT_EQ(error.remedies().size(), 1U);
        EXPECT_EQ(error.remedies().front().kind, Remedy::Kind::keep);
        EXPECT_EQ(error.remedies().front().tensor, "w");
        std::vector<std::byte> row(blob->size() / kRows);
        QuantizationError loss;
        ASSERT_EQ(blob, lossy);
        EXPECT_THROW(lossy->read_measured(2 * row.size(), row, &loss), Error);
        EXPECT_NO_THROW(lossy->read_measured(row.size(), row, &loss));
        EXPECT_THROW(lossy->read(2 * row.size(), row), Error);
        std::vector<std::byte> all(blob->size());
        EXPECT_THROW(blob->stream()->read(all), Error);
      }
    }
  }
}

// A block type whose scale follows from the largest numbers ignores weights, so weights hide no number that it loses.
TEST(BlockQuantize, TypesThatIgnoreImportanceRefuseTheSameBlocksWithIt) {
  constexpr std::uint64_t kColumns = 256;
  std::vector<float> values(kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 0.37F);
  std::vector<float> uneven(kColumns);
  for (std::size_t i = 0; i < uneven.size(); ++i) uneven[i] = i % 3 == 0 ? 100.0F : 0.001F;
  const auto weights = std::make_shared<std::vector<float>>(uneven);
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    SCOPED_TRACE(type.name);
    const Tensor matrix = tensor_of({1, kColumns}, values);
    const auto bytes = read_all(*quantize_to_blocks(matrix, type, nullptr).require("data").blob);
    const auto weighted = read_all(*quantize_to_blocks(matrix, type, weights).require("data").blob);
    EXPECT_EQ(bytes == weighted, !type.uses_importance);
  }
  values[7] = 1e6F;  // the largest scale of nvfp4 is 448, and its largest code 6
  const Tensor outlier = tensor_of({1, kColumns}, values);
  const BlockType& nvfp4 = *find_named_block_type("nvfp4");
  EXPECT_THROW(read_all(*quantize_to_blocks(outlier, nvfp4, nullptr).require("data").blob), Error);
  EXPECT_THROW(read_all(*quantize_to_blocks(outlier, nvfp4, weights).require("data").blob), Error);
}

// Sums of weighted squares overflow float32: resulting blocks are refused, even if they hold finite zeros.
TEST(BlockQuantize, WeightsOfErrorsThatAreTooLargeAreRefused) {
  constexpr std::uint64_t kColumns = 256;
  std::vector<float> values(kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 0.37F);
  std::size_t refused = 0;
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    for (const float weight : {0.0F, 1e-38F, 1.0F, 1e34F, 1e36F, 3e38F}) {
      SCOPED_TRACE(testing::Message() << type.name << " " << weight);
      const auto weights = std::make_shared<std::vector<float>>(kColumns, weight);
      const Tensor made = quantize_to_blocks(tensor_of({1, kColumns}, values), type, weights);
      try {
        std::vector<float> numbers(values.size());
        const auto bytes = read_all(*made.require("data").blob);
        type.decode(bytes.data(), numbers.size() / type.elements, numbers.data());
        for (std::size_t i = 0; i < numbers.size() && weight >= 1; ++i) ASSERT_NEAR(numbers[i], values[i], 0.85);
      } catch (const Error& error) {
        ++refused;
        EXPECT_GE(weight, 1e34F);
        EXPECT_THAT(error.what(), testing::HasSubstr("with these weights of the importance matrix"));
      }
    }
  }
  EXPECT_GE(refused, 2U * 9U);
}

TEST(BlockQuantize, NumbersThatAreNotFiniteAreRefused) {
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    std::vector<float> values(1024, 0.5F);
    values[777] = std::numeric_limits<float>::quiet_NaN();
    values[999] = std::numeric_limits<float>::infinity();
    const Tensor made = quantize_to_blocks(tensor_of({2, 512}, values), type, nullptr);
    const Error error = support::error_of([&] { read_all(*made.require("data").blob); });
    EXPECT_THAT(error.what(), testing::HasSubstr("tensor w: element 777 is not finite")) << type.name;
  }
}

}  // namespace
}  // namespace poise
