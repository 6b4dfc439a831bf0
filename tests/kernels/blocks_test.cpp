// Products with ggml's blocks: those of the numbers that the block type's decoder makes, which tests/codec compares with ggml.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "codec/block_type.hpp"
#include "kernels/product.hpp"

namespace poise {
namespace {

constexpr std::size_t kRows = 7;
constexpr std::size_t kColumns = 512;

// Blocks of an encoder of the type, so that scales are sane.
std::vector<std::byte> blocks_of(const BlockType& type, std::mt19937& random) {
  std::vector<float> numbers(kRows * kColumns);
  for (float& number : numbers) number = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0F;
  std::vector<std::byte> blocks(kRows * kColumns / type.elements * type.bytes);
  type.encode({numbers.data(), kRows, kColumns, nullptr}, blocks.data());
  return blocks;
}

TEST(Blocks, ProductsAreThoseOfTheDecodedNumbers) {
  std::mt19937 random(1);
  for (const BlockType& type : block_types()) {
    if (type.encode == nullptr) continue;
    SCOPED_TRACE(type.name);
    const std::vector<std::byte> blocks = blocks_of(type, random);
    std::vector<float> decoded(kRows * kColumns);
    type.decode(blocks.data(), decoded.size() / type.elements, decoded.data());
    const StoredRows matrix = {.storage = Storage::blocks, .data = blocks.data(), .columns = kColumns, .blocks = &type};
    for (const std::size_t tokens : {1U, 3U, 33U}) {
      std::vector<float> x(tokens * kColumns);
      for (float& number : x) number = static_cast<float>(static_cast<int>(random() % 201) - 100) / 64.0F;
      KernelInput input(matrix, tokens);
      for (std::size_t t = 0; t < tokens; t += KernelInput::kTogether) input.take(x.data(), t, std::min(tokens, t + KernelInput::kTogether));
      std::vector<float> y(tokens * kRows);
      multiply_rows(matrix, 0, kRows, input, y.data(), kRows);
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t r = 0; r < kRows; ++r) {
          double expected = 0;
          double size = 0;
          for (std::size_t i = 0; i < kColumns; ++i) {
            const double product = static_cast<double>(decoded[r * kColumns + i]) * static_cast<double>(x[t * kColumns + i]);
            expected += product;
            size += std::abs(product);
          }
          EXPECT_NEAR(y[t * kRows + r], expected, 4e-5 * size) << t << " " << r;
        }
      }
    }
  }
}

TEST(Blocks, AnyColumnsOfARowAreDecoded) {
  std::mt19937 random(2);
  for (const std::string_view name : {"q4_0", "q6_k", "q2_k"}) {
    const BlockType& type = *block_type_named(name);
    const std::vector<std::byte> blocks = blocks_of(type, random);
    std::vector<float> decoded(kRows * kColumns);
    type.decode(blocks.data(), decoded.size() / type.elements, decoded.data());
    const StoredRows matrix = {.storage = Storage::blocks, .data = blocks.data(), .columns = kColumns, .blocks = &type};
    for (const std::size_t first : {0U, 16U, 208U, 448U}) {
      const std::size_t last = std::min(kColumns, first + 64);
      const std::vector<float> x(kRows, 1.0F);
      std::vector<float> y(kColumns, -1.0F);
      multiply_columns(matrix, kRows, first, last, x.data(), 1, y.data());
      for (std::size_t c = first; c < last; ++c) {
        double expected = 0;
        for (std::size_t r = 0; r < kRows; ++r) expected += static_cast<double>(decoded[r * kColumns + c]);
        EXPECT_NEAR(y[c], expected, 1e-4) << name << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace poise
