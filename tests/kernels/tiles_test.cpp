// Products on a matrix unit, in ordinary code: what they round, and how many instructions they take. tests/runtime and
// kernels_test.cpp have products of every type, shape and unit.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <hwy/base.h>

#include "codec/block_type.hpp"
#include "kernels/product.hpp"
#include "kernels/token_counts.hpp"
#include "support/units.hpp"

namespace poise {
namespace {

// Returns the best instruction set, with tiles in ordinary code or without.
Unit find_best_unit(TileUnit tiles) { return {.target = hwy::SupportedAndGeneratedTargets().front(), .tiles = tiles}; }

// Holds a matrix of numbers, stored as a type.
struct StoredMatrix {
  std::string name;
  std::vector<std::byte> bytes = {};
  std::vector<std::byte> scales = {};
  std::vector<std::byte> zeros = {};
  StoredRows rows = {};
};

StoredMatrix matrix_of_storage(std::string name, Storage storage, std::size_t bits, std::size_t rows,
                               std::size_t columns, std::mt19937& random) {
  StoredMatrix matrix = {.name = std::move(name)};
  matrix.bytes.resize(rows * columns * bits / 8);
  for (std::byte& byte : matrix.bytes) byte = static_cast<std::byte>(random());
  matrix.rows = {.storage = storage, .columns = columns, .scale = 0.01F};
  if (storage == Storage::u8) matrix.rows.offset = -1.28F;
  if (storage == Storage::f32 || storage == Storage::bf16 || storage == Storage::f16) {
    // Between a quarter and 2, of either sign.
    const std::size_t bytes = bits / 8;
    const auto exponent = storage == Storage::f16 ? std::byte{0x34} : std::byte{0x3e};
    for (std::size_t i = bytes - 1; i < matrix.bytes.size(); i += bytes)
      matrix.bytes[i] = (matrix.bytes[i] & std::byte{0x81}) | exponent;
  } else if (storage == Storage::group4 || storage == Storage::group8) {
    matrix.rows.group_size = 128;
    for (std::size_t i = 0; i < rows * columns / 128; ++i) {
      matrix.scales.insert(matrix.scales.end(), {std::byte(random()), std::byte{0x2c}});
      matrix.zeros.insert(matrix.zeros.end(), {std::byte{0}, std::byte(storage == Storage::group4 ? 0x48 : 0x58)});
    }
  } else if (storage == Storage::mx4) {
    matrix.rows.group_size = 32;
    for (std::size_t i = 0; i < rows * columns / 32; ++i) matrix.scales.push_back(static_cast<std::byte>(124));
  }
  return matrix;
}

std::vector<float> normal_numbers(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> distribution;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = distribution(random);
  return numbers;
}

// Returns a matrix of every stored type but those without an encoder.
std::vector<StoredMatrix> matrices(std::size_t rows, std::size_t columns) {
  std::mt19937 random(1);
  std::vector<StoredMatrix> all;
  const auto put = [&](std::string_view name, Storage storage, std::size_t bits) {
    all.push_back(matrix_of_storage(std::string(name), storage, bits, rows, columns, random));
  };
  put("f32", Storage::f32, 32);
  put("f16", Storage::f16, 16);
  put("bf16", Storage::bf16, 16);
  put("i8", Storage::i8, 8);
  put("u8", Storage::u8, 8);
  put("i4", Storage::i4, 4);
  put("group8", Storage::group8, 8);
  put("group4", Storage::group4, 4);
  put("mx4", Storage::mx4, 4);
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr || type.decode == nullptr) continue;
    StoredMatrix matrix = {.name = std::string(type.name)};
    matrix.bytes.resize(rows * columns / type.elements * type.bytes);
    const std::vector<float> numbers = normal_numbers(rows * columns, random);
    type.encode({numbers.data(), rows, columns, nullptr}, matrix.bytes.data());
    matrix.rows = {.storage = Storage::blocks, .columns = columns, .blocks = &type};
    all.push_back(std::move(matrix));
  }
  for (StoredMatrix& matrix : all) {
    matrix.rows.data = matrix.bytes.data();
    if (!matrix.scales.empty()) matrix.rows.scales = matrix.scales.data();
    if (!matrix.zeros.empty()) matrix.rows.zeros = matrix.zeros.data();
  }
  return all;
}

std::vector<float> products(const StoredRows& matrix, std::size_t rows, const std::vector<float>& x) {
  const std::size_t tokens = x.size() / matrix.columns;
  KernelInput input(matrix, tokens);
  input.convert(x.data(), 0, tokens);
  std::vector<float> y(tokens * rows);
  multiply_rows(matrix, 0, rows, input, y.data(), rows);
  return y;
}

// Returns the rms error of products, as a part of their rms, against sums in float64.
double error_of_products(const StoredRows& matrix, std::size_t rows, const std::vector<float>& x) {
  const std::vector<float> y = products(matrix, rows, x);
  std::vector<float> weights(rows * matrix.columns);
  decode_rows(matrix, 0, rows, weights.data());
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float* const row = weights.data() + i % rows * matrix.columns;
    const float* const token = x.data() + i / rows * matrix.columns;
    double sum = 0;
    for (std::size_t c = 0; c < matrix.columns; ++c) sum += static_cast<double>(row[c]) * static_cast<double>(token[c]);
    errors += (static_cast<double>(y[i]) - sum) * (static_cast<double>(y[i]) - sum);
    squares += sum * sum;
  }
  return std::sqrt(errors / squares);
}

// The table in docs/quantization.md. Integers of 7 bits and a sign are what products of codes of six bits and fewer
// take for x where there is no matrix unit, for few tokens too.
TEST(Tiles, AreNoLessExactThanIntegersOfSevenBits) {
  constexpr std::size_t kRows = 40;
  std::mt19937 random(2);
  const std::vector<float> x = normal_numbers(kMany * 1024, random);
  for (const StoredMatrix& matrix : matrices(kRows, 1024)) {
    SCOPED_TRACE(matrix.name);
    double error = 0;
    {
      const ChosenUnit tiles(find_best_unit(TileUnit::plain));
      ASSERT_EQ(KernelInput(matrix.rows, kMany).form(), KernelInput::Form::tiles);
      error = error_of_products(matrix.rows, kRows, x);
      const std::size_t parts = KernelInput(matrix.rows, kMany).as<KernelInput::Tiles>().layout.parts;
      EXPECT_LT(error, parts == 1 ? 2.7e-3 : parts == 2 ? 8e-6 : parts == 3 ? 1e-6 : 5e-5);
    }
    const ChosenUnit integers(find_best_unit(TileUnit::none));
    constexpr std::size_t kFew = KernelInput::kFewTokensWithPanels;
    const std::vector<float> few(x.begin(), x.begin() + kFew * 1024);
    const double of_integers = error_of_products(matrix.rows, kRows, few);
    if (KernelInput(matrix.rows, kFew).form() == KernelInput::Form::bytes) {
      EXPECT_LT(error, of_integers);
    }
  }
}

// More rows than are taken together, and more tokens than are multiplied at once, with a rest of each.
TEST(Tiles, RowsInSeveralTurns) {
  const ChosenUnit tiles(find_best_unit(TileUnit::plain));
  std::mt19937 random(5);
  const std::vector<float> x = normal_numbers(50 * 768, random);
  for (const StoredMatrix& matrix : matrices(290, 768)) {
    if (matrix.rows.blocks != nullptr && matrix.name != "q4_k") continue;
    ASSERT_EQ(KernelInput(matrix.rows, 50).form(), KernelInput::Form::tiles);
    EXPECT_LT(error_of_products(matrix.rows, 290, x), 2.7e-3) << matrix.name;
  }
}

// Codes have no sign, and x has one. Sums are exact: they equal those in 64 bits, one product at a time.
TEST(Tiles, SumsOfCodesAreExact) {
  const ChosenUnit unit(find_best_unit(TileUnit::plain));
  std::mt19937 random(3);
  std::vector<std::uint8_t> codes(kTileCodeBlock * kTileRows);
  std::vector<std::int8_t> upper(kTileCodeBlock * kTileTokens);
  std::vector<std::int8_t> lower(upper.size());
  for (const bool largest : {false, true}) {
    for (std::uint8_t& code : codes) code = largest ? 255 : static_cast<std::uint8_t>(random());
    for (std::int8_t& number : upper) number = largest ? 127 : static_cast<std::int8_t>(random());
    for (std::int8_t& number : lower) number = largest ? -128 : static_cast<std::int8_t>(random());
    std::vector<std::int32_t> sums[2];
    for (auto& of_bytes : sums) of_bytes.resize(kTileTokens * kTileRows, -1);
    const TileScope scope;
    multiply_code_tiles({codes.data(), kTileCodeBlock, upper.data(), lower.data(), kTileCodeBlock}, sums[0].data(),
                        sums[1].data());
    for (std::size_t t = 0; t < kTileTokens; ++t) {
      for (std::size_t r = 0; r < kTileRows; ++r) {
        std::int64_t expected[2] = {};
        for (std::size_t c = 0; c < kTileCodeBlock; ++c) {
          const std::int64_t code = codes[r * kTileCodeBlock + c];
          const std::size_t place = c / 4 * 4 * kTileTokens + 4 * t + c % 4;
          expected[0] += code * upper[place];
          expected[1] += code * lower[place];
        }
        ASSERT_EQ(sums[0][r * kTileTokens + t], expected[0]) << t << " " << r;
        ASSERT_EQ(sums[1][r * kTileTokens + t], expected[1]) << t << " " << r;
      }
    }
  }
}

// Sums are exact, too, if x is the first factor, for one step of columns and for two.
TEST(Tiles, SumsOfPanelsAreExact) {
  const ChosenUnit unit(find_best_unit(TileUnit::plain));
  constexpr std::size_t kColumns = kMostTiledStep;
  constexpr std::size_t kLanes = kTileRows / 2;
  constexpr std::size_t kNext = kTileTokens * kColumns + 128;  // something may lie between
  std::mt19937 random(6);
  std::vector<std::uint8_t> codes(2 * kColumns * kTileRows);
  std::vector<std::int8_t> x(2 * kNext);
  for (const bool largest : {false, true}) {
    for (std::uint8_t& code : codes) code = largest ? 255 : static_cast<std::uint8_t>(random());
    for (std::int8_t& number : x) number = largest ? -128 : static_cast<std::int8_t>(random());
    for (const std::size_t parts : {1U, 2U}) {
      std::vector<std::int32_t> sums(2 * kTileSums, -1);
      const TileScope scope;
      multiply_panel_tiles({codes.data(), x.data(), kColumns, parts == 1 ? 0 : kNext}, sums.data());
      for (std::size_t i = 0; i < parts * kTileSums; ++i) {
        const std::size_t part = i / kTileSums;
        const std::size_t row = i / (kTileTokens * kLanes) % 2 * kLanes + i % kLanes;
        const std::size_t token = i / kLanes % kTileTokens;
        std::int64_t expected = 0;
        for (std::size_t c = 0; c < kColumns; ++c) {
          const std::size_t column = part * kColumns + c;
          expected += std::int64_t{codes[(column / 4 * kTileRows + row) * 4 + column % 4]} *
                      x[part * kNext + token * kColumns + c];
        }
        ASSERT_EQ(sums[i], expected) << i;
      }
      for (std::size_t i = parts * kTileSums; i < sums.size(); ++i) ASSERT_EQ(sums[i], -1) << i;
    }
  }
}

// Up to kTokensOfPanels, codes with a scale for many columns meet all bits of such integers, whatever the largest code:
// a group of tokens and a rest, steps in pairs and one alone.
TEST(Tiles, SomeTokensMeetCodesAsIntegersOfFifteenBits) {
  const ChosenUnit unit(find_best_unit(TileUnit::plain));
  std::mt19937 random(7);
  for (const std::size_t columns : {256U, 768U}) {
    const std::vector<float> x = normal_numbers(13 * columns, random);
    std::vector<std::string> tiled;
    for (const StoredMatrix& matrix : matrices(40, columns)) {
      const KernelInput input(matrix.rows, 13);
      if (input.form() != KernelInput::Form::panels || !input.as<KernelInput::Panels>().layout.tiled) continue;
      EXPECT_LT(error_of_products(matrix.rows, 40, x), 5e-5) << matrix.name;
      tiled.push_back(matrix.name);
    }
    // Other instruction sets have no panels.
    if (find_best_unit(TileUnit::plain).target <= HWY_AVX2) {
      EXPECT_EQ(tiled, (std::vector<std::string>{"i4", "group4"}));
    }
  }
}

// Fewer tokens than a tile takes leave the others alone, and have the same bits as in a whole tile.
TEST(Tiles, TakeAnyNumberOfTokens) {
  const ChosenUnit unit(find_best_unit(TileUnit::plain));
  std::mt19937 random(4);
  for (const StoredMatrix& matrix : matrices(3, 256)) {
    const std::vector<float> x = normal_numbers(72 * 256, random);
    const std::vector<float> all = products(matrix.rows, 3, x);
    for (const std::size_t tokens : {9U, 15U, 16U, 17U, 31U, 33U, 47U, 48U, 49U, 63U, 65U}) {
      if (KernelInput(matrix.rows, tokens).form() != KernelInput::Form::tiles) continue;
      const std::vector<float> first(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(tokens * 256));
      const std::vector<float> y = products(matrix.rows, 3, first);
      EXPECT_TRUE(std::equal(y.begin(), y.end(), all.begin())) << matrix.name << " " << tokens;
    }
  }
}

// Instructions per token of a prompt in the 22 layers of a Llama with 1.1 B parameters: the table in bench/machines.md.
// Its matrices are whole panels; a part of one stands for all.
TEST(Tiles, InstructionsOfAToken) {
#if !HWY_ARCH_X86
  GTEST_SKIP() << "only kernels for x86-64 unpack codes for a matrix unit";
#endif
  constexpr std::size_t kRows = 128;
  constexpr std::size_t kColumns = 2048;
  constexpr std::size_t kTokens = 256;
  constexpr double kWeights = 22.0 * (2 * 2048 * 2048 + 2 * 256 * 2048 + 3 * 5632 * 2048);
  // Of bfloat16: 16 rows, 16 tokens, 32 columns.
  constexpr double kProducts = kWeights / (16.0 * 16 * 32);
  const ChosenUnit unit(find_best_unit(TileUnit::plain));
  const std::vector<float> x(kTokens * kColumns, 1.0F);
  for (const StoredMatrix& matrix : matrices(kRows, kColumns)) {
    const TileCounts before = get_tile_counts();
    products(matrix.rows, kRows, x);
    const TileCounts after = get_tile_counts();
    const auto of_token = [&](std::uint64_t count) {
      return static_cast<double>(count) * kWeights / (kRows * kColumns) / kTokens;
    };
    const double made = of_token(after.products - before.products);
    const double loads = of_token(after.loads - before.loads);
    const double stores = of_token(after.stores - before.stores);
    const std::size_t parts = matrix.name == "f32" ? 6 : matrix.name == "f16" ? 3 : matrix.name == "bf16" ? 2 : 1;
    EXPECT_NEAR(made, static_cast<double>(parts) * kProducts, 1) << matrix.name;
    EXPECT_LE(loads, 1.12 * made) << matrix.name;
    EXPECT_LE(stores, 0.13 * made) << matrix.name;
  }
}

}  // namespace
}  // namespace poise
