// Stacked matrices against the same matrices alone.
#include "views/block_quantize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codec/block_type.hpp"

namespace poise {
namespace {

Tensor tensor_of(Shape shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_dense("w", std::move(shape), DType::f32, make_memory_blob(std::move(bytes), "w"));
}

std::vector<std::byte> blocks(const Tensor& tensor, const char* type, Importance importance) {
  return read_all(*quantize_to_blocks(tensor, *block_type_named(type), std::move(importance)).require("data").blob);
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
      const auto one = blocks(tensor_of({kRows, kColumns}, of(values, kRows * kColumns)), type,
                              std::make_shared<std::vector<float>>(of(weights, kColumns)));
      alone.insert(alone.end(), one.begin(), one.end());
    }
    const Tensor stacked = tensor_of({kMatrices, kRows, kColumns}, values);
    const Tensor made =
        quantize_to_blocks(stacked, *block_type_named(type), std::make_shared<std::vector<float>>(weights));
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

}  // namespace
}  // namespace poise
