// Every kernel on every kind of processor this one can stand in for, against float64 arithmetic done one by one. Where
// there is no matrix unit, its products are those of ordinary code.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/activation.hpp"
#include "kernels/cache_type.hpp"
#include "kernels/product.hpp"
#include "kernels/product_kernels.hpp"
#include "kernels/tiles.hpp"
#include "kernels/token_counts.hpp"
#include "support/units.hpp"

namespace poise {
namespace {

class Kernels : public ::testing::TestWithParam<Unit> {
  ChosenUnit chosen_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(every_unit()),
                         [](const auto& unit) { return name_of(unit.param); });

const std::vector<std::size_t> kAwkwardSizes = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 130};

std::vector<float> random_floats(std::size_t count, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 256.0F;
  return values;
}

// Decodes half precision by its definition: sign, 5 bits of exponent, 10 of mantissa.
double half(unsigned code) {
  const double sign = (code & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(code >> 10U & 31U);
  const double mantissa = static_cast<double>(code & 1023U) / 1024;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15));
}

// Holds a matrix of random codes that ends where its memory ends and begins `misalignment` bytes off, and its values.
struct RandomMatrix {
  RandomMatrix(Storage storage, std::size_t rows, std::size_t columns, std::size_t misalignment, std::mt19937& random) {
    const std::size_t elements = rows * columns;
    bytes.resize(misalignment);
    stored = {.storage = storage, .data = nullptr, .columns = columns, .scale = 0.125F, .offset = 0};
    const auto put = [&](auto code) {
      const auto* begin = reinterpret_cast<const std::byte*>(&code);
      bytes.insert(bytes.end(), begin, begin + sizeof code);
    };
    const bool is_unsigned = storage == Storage::u8 || storage == Storage::u4 || storage == Storage::u4_bytes;
    if (is_unsigned) stored.offset = -0.75F;
    for (std::size_t i = 0; i < elements; ++i) {
      const auto code = static_cast<std::uint32_t>(random());
      switch (storage) {
        case Storage::f32: {
          const auto value = static_cast<float>(code % 1000) / 64.0F - 7.0F;
          put(value);
          values.push_back(static_cast<double>(value));
          break;
        }
        case Storage::f16: {
          const auto bits = static_cast<std::uint16_t>(code & 0xbfffU);  // below 2
          put(bits);
          values.push_back(half(bits));
          break;
        }
        case Storage::bf16: {
          const std::uint32_t bits = (code & 0x80ff0000U) | 0x3f000000U;
          put(static_cast<std::uint16_t>(bits >> 16U));
          float value = 0;
          std::memcpy(&value, &bits, 4);
          values.push_back(static_cast<double>(value));
          break;
        }
        case Storage::i8:
        case Storage::u8:
          put(static_cast<std::uint8_t>(code));
          values.push_back(is_unsigned ? static_cast<double>(code & 255U) * 0.125 - 0.75
                                       : static_cast<double>(static_cast<std::int8_t>(code)) * 0.125);
          break;
        case Storage::group8:
        case Storage::group4:   // RandomGroups below
        case Storage::mx4:      // RandomMx
        case Storage::scaled8:  // tests/runtime/stored_form_test.cpp
        case Storage::scaled4:
        case Storage::codebook4:
        case Storage::scaled_f8_e4m3:
        case Storage::scaled_f8_e5m2:
        case Storage::by_column8:
        case Storage::by_column4:
        case Storage::blocks: break;  // blocks_test.cpp
        case Storage::i4:
        case Storage::u4:
        case Storage::i4_bytes:
        case Storage::u4_bytes: {
          const unsigned nibble = code & 15U;
          const int number = is_unsigned || nibble < 8 ? static_cast<int>(nibble) : static_cast<int>(nibble) - 16;
          values.push_back(number * 0.125 + (is_unsigned ? -0.75 : 0.0));
          const bool in_bytes = storage == Storage::i4_bytes || storage == Storage::u4_bytes;
          if (in_bytes) {
            put(static_cast<std::uint8_t>(code));  // the high nibble does not count
          } else if (i % 2 == 0) {
            put(static_cast<std::uint8_t>(nibble));
          } else {
            bytes.back() |= static_cast<std::byte>(nibble << 4U);
          }
          break;
        }
      }
    }
    bytes.shrink_to_fit();
    stored.data = bytes.data() + misalignment;
  }

  std::vector<std::byte> bytes;
  std::vector<double> values;  // [rows, columns]
  StoredRows stored;
};

// Holds group-quantized rows: value = (code - zero) * scale with scales and zeros that float16 holds exactly.
struct RandomGroups {
  RandomGroups(Storage storage, std::size_t rows, std::size_t columns, std::size_t group_size, std::mt19937& random)
      : codes(rows * columns / (storage == Storage::group4 ? 2 : 1)) {
    const unsigned largest = storage == Storage::group4 ? 15 : 255;
    const auto put_half = [](std::vector<std::byte>& bytes, unsigned bits) {
      bytes.push_back(static_cast<std::byte>(bits & 255U));
      bytes.push_back(static_cast<std::byte>(bits >> 8U));
    };
    for (std::size_t i = 0; i < rows * columns; ++i) {
      if (i % group_size == 0) {
        put_half(scales, 0x2c00U + static_cast<unsigned>(random() % 8) * 64U);  // 2^-4 and more
        put_half(zeros, 0x4000U + static_cast<unsigned>(random() % 4) * 256U);  // 2 to 3.5
      }
      const auto number = [&](const std::vector<std::byte>& bytes) {
        return half(std::to_integer<unsigned>(bytes[bytes.size() - 2]) | std::to_integer<unsigned>(bytes.back()) << 8U);
      };
      const unsigned code = static_cast<unsigned>(random()) & largest;
      if (storage == Storage::group8) codes[i] = static_cast<std::byte>(code);
      if (storage == Storage::group4) codes[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4U);
      values.push_back((code - number(zeros)) * number(scales));
    }
    stored = {.storage = storage,
              .data = codes.data(),
              .columns = columns,
              .group_size = group_size,
              .scales = scales.data(),
              .zeros = zeros.data()};
  }

  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<std::byte> zeros;
  std::vector<double> values;
  StoredRows stored;
};

// Holds numbers as the Open Compute Project's MX specification has them: E2M1 times a power of two for 32 neighbours.
struct RandomMx {
  RandomMx(std::size_t rows, std::size_t columns, std::mt19937& random) : codes(rows * columns / 2) {
    constexpr double kNumbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (std::size_t i = 0; i < rows * columns; ++i) {
      if (i % 32 == 0) scales.push_back(static_cast<std::byte>(120 + random() % 12));
      const auto code = static_cast<unsigned>(random()) & 15U;
      codes[i / 2] |= static_cast<std::byte>(i % 2 == 0 ? code : code << 4U);
      values.push_back(
          std::ldexp(code < 8 ? kNumbers[code] : -kNumbers[code - 8], std::to_integer<int>(scales.back()) - 127));
    }
    stored = {
        .storage = Storage::mx4, .data = codes.data(), .columns = columns, .group_size = 32, .scales = scales.data()};
  }

  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<double> values;
  StoredRows stored;
};

// Returns y [tokens, stride], computed as the runtime does.
std::vector<float> products(const StoredRows& matrix, std::size_t first, std::size_t last, const std::vector<float>& x,
                            std::size_t stride, Precision precision = Precision::fast) {
  const std::size_t tokens = x.size() / matrix.columns;
  std::vector<float> y(tokens * stride, -1);
  const std::size_t half = tokens > KernelInput::kTogether ? KernelInput::kTogether : 0;
  KernelInput input(matrix, tokens, precision);
  input.convert(x.data(), half, tokens);
  input.convert(x.data(), 0, half);
  multiply_rows(matrix, first, last, input, y.data() + first, stride);
  return y;
}

// Computes a product, and the error that product.hpp allows: of sums in float32, of products that a matrix unit may
// round; where x becomes integers, half a step of x for each weight; where weights become integers, half a step of
// weights for each x. Codes are summed before scale and offset meet, so that `magnitude` counts both.
struct Expected {
  Expected(const StoredRows& matrix, const double* weights, const float* x, std::size_t tokens,
           Precision precision = Precision::fast) {
    const KernelInput input(matrix, tokens, precision);
    const bool words = input.form() == KernelInput::Form::words;
    const bool bytes = input.form() == KernelInput::Form::bytes;
    const bool panels = input.form() == KernelInput::Form::panels;
    const bool tiles = input.form() == KernelInput::Form::tiles;
    const bool code_tiles = tiles && input.as<KernelInput::Tiles>().layout.parts == 0;
    const bool integers = words || bytes || panels || code_tiles;
    const std::size_t block = panels       ? input.as<KernelInput::Panels>().layout.step
                              : bytes      ? KernelInput::kByteBlock
                              : code_tiles ? kTileCodeBlock
                                           : KernelInput::kIntegerBlock;
    const auto of_panels = panels ? input.as<KernelInput::Panels>().layout.integers : PanelIntegers::bytes;
    const bool rounded = of_panels == PanelIntegers::rounded;
    const double half_steps = panels       ? (rounded                             ? 2 * 5792
                                              : of_panels == PanelIntegers::words ? 65278
                                                                                  : 254)
                              : bytes      ? 254
                              : code_tiles ? 65278
                                           : 65534;
    for (std::size_t begin = 0; begin < matrix.columns; begin += block) {
      const std::size_t end = std::min(matrix.columns, begin + block);
      double largest = 0;
      double largest_weight = 0;
      double sum_of_inputs = 0;
      double sum_of_weights = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const double in = static_cast<double>(x[i]);
        const double product = weights[i] * in;
        value += product;
        magnitude += std::abs(product);
        largest = std::max(largest, std::abs(in));
        largest_weight = std::max(largest_weight, std::abs(weights[i]));
        sum_of_inputs += std::abs(in);
        sum_of_weights += std::abs(weights[i]);
      }
      if (!integers) continue;
      magnitude += (std::abs(static_cast<double>(matrix.offset)) + 8 * std::abs(static_cast<double>(matrix.scale))) *
                   sum_of_inputs;
      steps += largest / half_steps * sum_of_weights;
      // Each x is off by half a step, too, where it meets the error of a weight.
      if (rounded)
        steps += largest_weight / half_steps * (sum_of_inputs + largest / half_steps * static_cast<double>(block));
    }
    if (tiles && !code_tiles)
      steps = magnitude * largest_error_of_tiles(matrix, input.as<KernelInput::Tiles>().layout.parts);
  }
  // Returns the largest relative error of products, as tiles.hpp states it.
  static double largest_error_of_tiles(const StoredRows& matrix, std::size_t parts_of_x) {
    if (parts_of_x == 1) return 0x1.02p-7;
    if (parts_of_x == 2) return matrix.storage == Storage::bf16 ? 0x1p-17 : 0x1p-15;
    return 0x1p-24;
  }
  double tolerance() const { return 1.0001 * steps + 2e-6 * magnitude + 1e-30; }

  double value = 0;
  double magnitude = 0;
  double steps = 0;
};

// Decodes a matrix and multiplies it by some tokens, alone and together. Few are to give the bits that each gives
// alone, many the same in any company; and all for any part of the rows.
void expect_products(const StoredRows& matrix, const std::vector<double>& values, std::size_t tokens,
                     std::mt19937& random) {
  const std::size_t columns = matrix.columns;
  const std::size_t rows = values.size() / columns;
  std::vector<float> decoded(rows * columns);
  decode_rows(matrix, 0, rows, decoded.data());
  for (std::size_t i = 0; i < decoded.size(); ++i) ASSERT_EQ(static_cast<double>(decoded[i]), values[i]) << i;
  const std::size_t first = random() % rows;
  decode_rows(matrix, first, rows - first, decoded.data() + first * columns);
  for (std::size_t i = 0; i < decoded.size(); ++i) ASSERT_EQ(static_cast<double>(decoded[i]), values[i]) << i;

  const std::vector<float> x = random_floats(tokens * columns, random);
  const std::size_t stride = rows + 3;
  const std::size_t company = equivalent_count(matrix, tokens);
  const std::size_t many = company == 1 ? kMany : company;
  const std::vector<float> together = products(matrix, 0, rows, x, stride);
  const std::vector<float> later = products(matrix, first, rows, x, stride);
  for (std::size_t t = 0; t < tokens; ++t) {
    std::vector<float> token(x.begin() + static_cast<std::ptrdiff_t>(t * columns),
                             x.begin() + static_cast<std::ptrdiff_t>((t + 1) * columns));
    const std::vector<float> alone = products(matrix, 0, rows, token, rows);
    const std::vector<float> exact_alone = products(matrix, 0, rows, token, rows, Precision::exact);
    for (std::size_t i = 1; i < many; ++i)
      token.insert(token.end(), x.begin(), x.begin() + static_cast<std::ptrdiff_t>(columns));
    const std::vector<float> among_many = products(matrix, 0, rows, token, rows);
    token.resize(2 * columns);
    const std::vector<float> exact_in_pair = products(matrix, 0, rows, token, rows, Precision::exact);
    const auto& in_company = company == 1 ? alone : among_many;
    for (std::size_t r = 0; r < rows; ++r) {
      SCOPED_TRACE(fmt::format("token {}, row {}", t, r));
      for (const bool is_alone : {true, false}) {
        const double* const weights = values.data() + r * columns;
        const Expected expected(matrix, weights, x.data() + t * columns, is_alone ? 1 : many);
        ASSERT_NEAR(static_cast<double>((is_alone ? alone : among_many)[r]), expected.value, expected.tolerance())
            << is_alone;
        const Expected exact(matrix, weights, x.data() + t * columns, is_alone ? 1 : 2, Precision::exact);
        ASSERT_NEAR(static_cast<double>((is_alone ? exact_alone : exact_in_pair)[r]), exact.value, exact.tolerance())
            << is_alone;
      }
      ASSERT_EQ(together[t * stride + r], in_company[r]);
      ASSERT_EQ(later[t * stride + r], r < first ? -1 : together[t * stride + r]);
    }
    for (std::size_t r = rows; r < stride; ++r)
      ASSERT_EQ(together[t * stride + r], -1) << "nothing is written behind the rows";
  }
}

TEST_P(Kernels, ProductsOfMxNumbers) {
  std::mt19937 random(6);
  for (const std::size_t columns : {32U, 96U, 1024U, 1056U, 2144U}) {
    for (const std::size_t rows : {1U, 3U, 4U, 9U}) {
      const RandomMx matrix(rows, columns, random);
      expect_products(matrix.stored, matrix.values, 3, random);
    }
  }
}

TEST(Kernels, ScalesOfMxReachFromTheSmallestToNone) {
  const std::vector<std::byte> codes(16, std::byte{0x2f});  // -6 and 1 by turns
  for (const auto& [scale, largest] :
       {std::pair(0U, -0x1.8p-125F), std::pair(1U, -0x1.8p-124F), std::pair(254U, -INFINITY)}) {
    const auto exponent = static_cast<std::byte>(scale);
    float out[32];
    decode_rows({.storage = Storage::mx4, .data = codes.data(), .columns = 32, .group_size = 32, .scales = &exponent},
                0, 1, out);
    EXPECT_EQ(out[0], largest) << scale;
    EXPECT_EQ(out[31], std::ldexp(1.0F, static_cast<int>(scale) - 127)) << scale;
  }
  const auto none = std::byte{255};
  float out[32];
  decode_rows({.storage = Storage::mx4, .data = codes.data(), .columns = 32, .group_size = 32, .scales = &none}, 0, 1,
              out);
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST_P(Kernels, ProductsOfGroups) {
  std::mt19937 random(4);
  for (const Storage storage : {Storage::group8, Storage::group4}) {
    for (const std::size_t group_size : {16U, 32U, 48U, 64U, 128U, 256U}) {
      for (const std::size_t groups : {1U, 3U, 33U}) {
        SCOPED_TRACE(fmt::format("storage {}, {} groups of {}", static_cast<int>(storage), groups, group_size));
        const std::size_t rows = 1 + random() % 9;
        const RandomGroups matrix(storage, rows, group_size * groups, group_size, random);
        expect_products(matrix.stored, matrix.values, 1 + random() % 9, random);
      }
    }
  }
}

const std::vector<Storage> kStorages = {Storage::f32, Storage::f16, Storage::bf16,     Storage::i8,      Storage::u8,
                                        Storage::i4,  Storage::u4,  Storage::i4_bytes, Storage::u4_bytes};

TEST_P(Kernels, ProductsOfEveryStorageAtAwkwardSizesAndAddresses) {
  std::mt19937 random(3);
  for (const Storage storage : kStorages) {
    for (const std::size_t columns : kAwkwardSizes) {
      const std::size_t rows = 1 + random() % 11;
      SCOPED_TRACE(fmt::format("storage {}, {} rows, {} columns", static_cast<int>(storage), rows, columns));
      const RandomMatrix matrix(storage, rows, columns, random() % 4, random);
      expect_products(matrix.stored, matrix.values, 1 + random() % 14, random);
    }
  }
}

TEST_P(Kernels, ProductsOfSeveralBlocksAndPanels) {
  std::mt19937 random(6);
  for (const Storage storage : kStorages) {
    for (const std::size_t columns : {512U, 1030U, 1072U, 1216U, 2187U, 2304U}) {
      SCOPED_TRACE(fmt::format("storage {}, {} columns", static_cast<int>(storage), columns));
      const RandomMatrix matrix(storage, 67, columns, 0, random);
      expect_products(matrix.stored, matrix.values, 3 + random() % 4, random);
    }
  }
}

// An infinity or NaN among the weights of a row reaches the sums of that row alone.
TEST_P(Kernels, WeightsThatAreNotFinite) {
  std::mt19937 random(9);
  constexpr std::size_t kRows = 40;
  constexpr std::size_t kColumns = 1088;
  constexpr std::size_t kTokens = 35;
  const std::vector<float> x = random_floats(kTokens * kColumns, random);
  for (const auto& [storage, infinity, nan] :
       {std::tuple(Storage::f16, 0x7c00U, 0x7e00U), std::tuple(Storage::bf16, 0x7f80U, 0x7fc0U)}) {
    RandomMatrix matrix(storage, kRows, kColumns, 0, random);
    const auto put = [&](std::size_t row, std::size_t column, unsigned bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      std::memcpy(matrix.bytes.data() + 2 * (row * kColumns + column), &half, 2);
    };
    put(7, 700, infinity);
    put(33, 1087, nan);
    const std::vector<float> y = products(matrix.stored, 0, kRows, x, kRows);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isfinite(y[i]), i % kRows != 7 && i % kRows != 33) << i;
  }
}

// Expects y = x times the matrix itself, in parts of its columns or of its rows, and the same bits among any other
// tokens.
void expect_column_products(const StoredRows& matrix, const std::vector<double>& values, std::size_t tokens,
                            std::mt19937& random) {
  const std::size_t columns = matrix.columns;
  const std::size_t rows = values.size() / columns;
  const std::vector<float> x = random_floats(tokens * rows, random);
  std::vector<float> y(tokens * columns, -1);
  const std::size_t middle = columns / 2 / 16 * 16;
  multiply_columns(matrix, rows, middle, columns, x.data(), tokens, y.data());
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t c = 0; c < middle; ++c) ASSERT_EQ(y[t * columns + c], -1);
  }
  multiply_columns(matrix, rows, 0, middle, x.data(), tokens, y.data());
  for (std::size_t t = 0; t < tokens; ++t) {
    std::vector<float> alone(columns);
    multiply_columns(matrix, rows, 0, columns, x.data() + t * rows, 1, alone.data());
    std::vector<float> sums(columns, 0.0F);
    const std::size_t part = rows / 3;
    add_rows(matrix, 0, part, x.data() + t * rows, sums.data());
    add_rows(matrix, part, rows, x.data() + t * rows, sums.data());
    for (std::size_t c = 0; c < columns; ++c) {
      double expected = 0;
      double magnitude = 1;
      for (std::size_t r = 0; r < rows; ++r) {
        const double product = values[r * columns + c] * static_cast<double>(x[t * rows + r]);
        expected += product;
        magnitude += std::abs(product);
      }
      ASSERT_NEAR(static_cast<double>(y[t * columns + c]), expected, 1e-5 * magnitude);
      ASSERT_EQ(alone[c], y[t * columns + c]);
      ASSERT_EQ(sums[c], alone[c]);
    }
  }
}

TEST_P(Kernels, ProductsWithColumns) {
  std::mt19937 random(8);
  for (const Storage storage : kStorages) {
    for (const std::size_t columns : kAwkwardSizes) {
      const std::size_t rows = 1 + random() % 150;
      SCOPED_TRACE(fmt::format("storage {}, {} rows, {} columns", static_cast<int>(storage), rows, columns));
      const RandomMatrix matrix(storage, rows, columns, random() % 5, random);
      expect_column_products(matrix.stored, matrix.values, 1 + random() % 9, random);
    }
  }
  for (const Storage storage : {Storage::group8, Storage::group4}) {
    SCOPED_TRACE(fmt::format("storage {}", static_cast<int>(storage)));
    const RandomGroups matrix(storage, 70, 96, 48, random);
    expect_column_products(matrix.stored, matrix.values, 5, random);
  }
}

// More rows than a panel has, more tokens than are side by side, and blocks that end inside a group.
TEST_P(Kernels, ProductsOfManyTokens) {
  std::mt19937 random(7);
  for (const Storage storage : {Storage::f16, Storage::i8, Storage::i4}) {
    SCOPED_TRACE(fmt::format("storage {}", static_cast<int>(storage)));
    const RandomMatrix matrix(storage, 77, 301, 1, random);
    expect_products(matrix.stored, matrix.values, 97, random);
  }
  for (const Storage storage : {Storage::group8, Storage::group4}) {
    SCOPED_TRACE(fmt::format("storage {}", static_cast<int>(storage)));
    const RandomGroups matrix(storage, 77, 480, 48, random);
    expect_products(matrix.stored, matrix.values, 65, random);
  }
}

// The last tokens fill a vector or a tile, or begin another one.
TEST_P(Kernels, ProductsOfEveryNumberOfLastTokens) {
  std::mt19937 random(8);
  for (const Storage storage : {Storage::f16, Storage::bf16}) {
    const RandomMatrix matrix(storage, 40, 70, 2, random);
    for (const std::size_t tokens : {15U, 16U, 17U, 23U, 31U, 32U, 33U, 48U, 49U}) {
      SCOPED_TRACE(fmt::format("storage {}, {} tokens", static_cast<int>(storage), tokens));
      expect_products(matrix.stored, matrix.values, tokens, random);
    }
  }
}

// Every lane has the largest code and the largest x: exact sums must not overflow.
TEST_P(Kernels, ProductsAtTheLimitOfIntegers) {
  const std::size_t columns = 4096;
  for (const Storage storage : {Storage::i8, Storage::u8}) {
    for (const unsigned code : {0x80U, 0x7fU, 0xffU}) {
      for (const float x : {3.0F, -3.0F}) {
        const std::vector<std::byte> codes(4 * columns, static_cast<std::byte>(code));
        const StoredRows matrix = {.storage = storage, .data = codes.data(), .columns = columns};
        const double weight = storage == Storage::u8 || code < 128 ? code : code - 256.0;
        for (const std::size_t tokens : {std::size_t{1}, std::size_t{2}, kMany}) {
          const double expected = weight * static_cast<double>(x) * columns;
          for (const float y : products(matrix, 0, 4, std::vector<float>(tokens * columns, x), 4))
            EXPECT_NEAR(static_cast<double>(y), expected, 1e-6 * std::abs(expected));
        }
      }
    }
  }
}

TEST_P(Kernels, ProductsDoNotHideWhatIsNoNumber) {
  const std::size_t columns = 1500;
  const std::vector<std::byte> codes(2 * columns, std::byte{0});
  for (const Storage storage : {Storage::f32, Storage::i8, Storage::u4}) {
    const StoredRows matrix = {
        .storage = storage, .data = codes.data(), .columns = storage == Storage::f32 ? columns / 4 : columns};
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      for (const std::size_t at : {std::size_t{0}, std::size_t{17}, matrix.columns - 1}) {
        std::vector<float> x(matrix.columns, 1.0F);
        x[at] = bad;
        EXPECT_TRUE(std::isnan(products(matrix, 0, 1, x, 1)[0]));
        for (const std::size_t tokens : {std::size_t{2}, kMany}) {
          x.resize(tokens * matrix.columns, 1.0F);
          const std::vector<float> of_tokens = products(matrix, 0, 1, x, 1);
          EXPECT_TRUE(std::isnan(of_tokens[0]));
          EXPECT_EQ(of_tokens[1], 0);
        }
      }
    }
  }
}

// IEEE 754's binary16, on processors without an instruction for it, too.
TEST_P(Kernels, HalvesAreNumbersInfinitiesAndNaN) {
  const std::uint16_t halves[8] = {0x7c00, 0xfc00, 0x7e00, 0x7bff, 0x0001, 0x8400, 0x0000, 0x3c01};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float numbers[8] = {kInfinity, -kInfinity,  std::numeric_limits<float>::quiet_NaN(), 65504, 0x1p-24F, -0x1p-14F,
                            0,         1 + 0x1p-10F};
  const auto expect_number = [](float is, float expected) {
    EXPECT_TRUE(is == expected || (std::isnan(is) && std::isnan(expected))) << is << " instead of " << expected;
  };
  std::uint16_t row[16];
  float out[16];
  for (std::size_t i = 0; i < 16; ++i) row[i] = halves[i % 8];
  decode_rows({.storage = Storage::f16, .data = reinterpret_cast<const std::byte*>(row), .columns = 16}, 0, 1, out);
  for (std::size_t i = 0; i < 16; ++i) expect_number(out[i], numbers[i % 8]);
  // Scales of groups, in products of codes that are 1 with an x that has one number other than 0.
  const std::vector<std::byte> ones(128, std::byte{1});
  const std::vector<std::byte> zeros(16);
  StoredRows groups = {.storage = Storage::group8,
                       .data = ones.data(),
                       .columns = 128,
                       .group_size = 16,
                       .scales = nullptr,
                       .zeros = zeros.data()};
  for (std::size_t g = 0; g < 8; ++g) {
    std::uint16_t scales[8] = {};
    scales[g] = halves[g];
    groups.scales = reinterpret_cast<const std::byte*>(scales);
    std::vector<float> x(128);
    for (std::size_t i = 0; i < 16; ++i) x[16 * g + i] = 1.0F;
    KernelInput input(groups, 1);
    input.convert(x.data(), 0, 1);
    float y = 0;
    multiply_rows(groups, 0, 1, input, &y, 1);
    if (std::isfinite(numbers[g])) {
      EXPECT_NEAR(y, 16 * numbers[g], std::abs(1e-4F * numbers[g]));
    } else {
      EXPECT_FALSE(std::isfinite(y));
    }
  }
}

TEST_P(Kernels, AnInfiniteFactorLeavesNothingFinite) {
  const std::vector<float> weights(300, 1.5F);
  const StoredRows matrix = {
      .storage = Storage::f32, .data = reinterpret_cast<const std::byte*>(weights.data()), .columns = weights.size()};
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{2}, kMany}) {
    std::vector<float> x(tokens * weights.size(), 1.0F);
    x[123] = std::numeric_limits<float>::infinity();
    const std::vector<float> y = products(matrix, 0, 1, x, 1);
    EXPECT_FALSE(std::isfinite(y[0]));
    EXPECT_EQ(y.back() == 450, tokens > 1);
  }
}

// A large x makes the steps of its own block coarser, and of no other.
TEST_P(Kernels, EveryBlockHasItsOwnSteps) {
  const std::size_t columns = 2 * KernelInput::kIntegerBlock;
  std::vector<std::byte> codes(columns, std::byte{1});
  codes[0] = std::byte{0};
  const StoredRows matrix = {.storage = Storage::i8, .data = codes.data(), .columns = columns};
  std::vector<float> x(columns, 0.0F);
  x[0] = 1e9F;  // meets a weight of zero
  x[KernelInput::kIntegerBlock] = 1e-3F;
  EXPECT_NEAR(static_cast<double>(products(matrix, 0, 1, x, 1)[0]), 1e-3, 1e-9);
}

// The first part is x rounded to the nearest bfloat16, to even where two are as near; the next what is left, rounded
// likewise. Three are x.
TEST_P(Kernels, NumbersAreSplitInParts) {
  const std::vector<std::array<std::uint32_t, 3>> cases = {
      // bits of x, of the first and the second part
      {0x00000000, 0x0000, 0x0000},
      {0x80000000, 0x8000, 0x0000},
      {0x3f800000, 0x3f80, 0x0000},
      {0x3f808000, 0x3f80, 0x3b80},  // 1 + 2^-8: half way, to even
      {0x3f818000, 0x3f82, 0xbb80},  // 1 + 3 * 2^-8: half way, to even, which is above
      {0x3f800001, 0x3f80, 0x3400},  // 1 + 2^-23
      {0xbf80ffff, 0xbf81, 0x3400},  // -(1 + 2^-7 - 2^-23)
      {0x40490fdb, 0x4049, 0x3a7e},  // pi: 3.140625 + 0.00096893310546875
      {0x7f7f7fff, 0x7f7f, 0x7b00},
      {0x7f7fffff, 0x7f7f, 0x7b80},  // the largest: bfloat16 has nothing so large, it is
                                     // cut
      {0x7f800000, 0x7f80, 0x0000},
      {0xff800000, 0xff80, 0x0000},
      {0x7f800001, 0x7fc0, 0x0000},
      {0xffffffff, 0xffff, 0x0000},
  };
  // The finite ones again without the others, which take their neighbours another way.
  std::vector<float> x(64);
  for (std::size_t i = 0; i < cases.size(); ++i) std::memcpy(&x[i], &cases[i][0], 4);
  constexpr std::size_t kAgain = 32;
  for (std::size_t i = 0; i < cases.size(); ++i) x[kAgain + i] = std::abs(x[i]) < 3e38F ? x[i] : 0.0F;
  std::vector<std::uint16_t> parts[3];
  for (auto& part : parts) part.resize(64);
  std::uint16_t* const places[3] = {parts[0].data(), parts[1].data(), parts[2].data()};
  for (const std::size_t count : {2U, 3U}) {
    parts[2].assign(64, 0x1234);
    split_floats(x.data(), 64, std::span(places).first(count));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (std::size_t p = 0; p < count && std::abs(x[i]) < 3e38F; ++p)
        EXPECT_EQ(parts[p][kAgain + i], parts[p][i]) << i;
      EXPECT_EQ(parts[0][i], cases[i][1]) << i;
      EXPECT_EQ(parts[1][i], cases[i][2]) << i;
      if (count == 2) {
        EXPECT_EQ(parts[2][i], 0x1234);
      } else if (std::isfinite(x[i])) {
        double sum = 0;
        for (const auto& part : parts) sum += static_cast<double>(std::bit_cast<float>(std::uint32_t{part[i]} << 16U));
        EXPECT_EQ(sum, static_cast<double>(x[i])) << i;
      } else {
        EXPECT_EQ(parts[2][i], 0) << i;
      }
    }
  }
}

// One product a sum: what it is off by is what the product is, in prompts too and whatever multiplies them.
TEST_P(Kernels, ProductsOfFloat32NumbersAreRoundedAsFloat32Is) {
  std::mt19937 random(20);
  const std::size_t rows = 70;
  const std::size_t tokens = 40;
  const auto numbers = [&](std::size_t count) {
    std::vector<float> all(count);
    for (float& number : all)
      number = std::bit_cast<float>(0x3f800000U ^ (static_cast<std::uint32_t>(random()) & 0x837fffffU));
    return all;
  };
  const std::vector<float> weights = numbers(rows);
  const std::vector<float> x = numbers(tokens);
  const StoredRows matrix = {
      .storage = Storage::f32, .data = reinterpret_cast<const std::byte*>(weights.data()), .columns = 1};
  const std::vector<float> y = products(matrix, 0, rows, x, rows);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < rows; ++r) {
      const double product = static_cast<double>(weights[r]) * static_cast<double>(x[t]);
      ASSERT_NEAR(static_cast<double>(y[t * rows + r]), product, 0x1p-22 * std::abs(product)) << t << " " << r;
    }
  }
}

// Holds a block of a cache with random codes and scales, and its numbers. Positions outside the run have none.
struct RandomBlock {
  enum class Cached { keys, values };

  RandomBlock(const CacheTypeRow& type, Cached what, std::size_t size, std::mt19937& random)
      : bytes(type.count_block_bytes(size)), numbers(kBlockPositions * size) {
    run = {bytes.data(), random() % kBlockPositions, 0};
    run.count = random() % (kBlockPositions - run.first + 1);
    const std::size_t groups = type.count_scales(size);
    std::vector<float> scales(groups * kBlockPositions);
    for (float& scale : scales) scale = static_cast<float>(1 + random() % 255) / 2048.0F;
    const auto place = [&](std::size_t position, std::size_t i, std::size_t count) {
      return what == Cached::keys ? i * kBlockPositions + position : position * count + i;
    };
    for (std::size_t position = 0; position < kBlockPositions; ++position) {
      const bool is_in_run = position >= run.first && position < run.first + run.count;
      for (std::size_t e = 0; e < size; ++e) {
        std::byte* const to = bytes.data() + place(position, e, size) * type.count_code_bytes();
        double& number = numbers[position * size + e];
        if (type.type == CacheType::f32) {
          const float code = is_in_run ? random_floats(1, random)[0] : NAN;
          number = static_cast<double>(code);
          std::memcpy(to, &code, sizeof code);
        } else if (type.type == CacheType::f16) {
          const auto code =
              static_cast<std::uint16_t>(is_in_run ? random() % 0x4800 | (random() & 1U) << 15U : 0x7e00U);
          number = half(code);
          std::memcpy(to, &code, sizeof code);
        } else {
          const auto code = static_cast<std::int8_t>(static_cast<int>(random() % 255) - 127);
          float& scale = scales[place(position, e / 32, groups)];
          if (!is_in_run) scale = NAN;
          number = static_cast<double>(code) * static_cast<double>(scale);
          std::memcpy(to, &code, sizeof code);
        }
      }
    }
    std::ranges::copy(std::as_bytes(std::span(scales)),
                      bytes.begin() + static_cast<std::ptrdiff_t>(kBlockPositions * size * type.count_code_bytes()));
  }

  double operator()(std::size_t i, std::size_t e, std::size_t size) const {
    return numbers[(run.first + i) * size + e];
  }

  std::vector<std::byte> bytes;
  std::vector<double> numbers;
  CachedRun run;
};

// Scores equal sums in double, and the scores of a query do not depend on the queries next to it.
TEST_P(Kernels, ScoresAreProductsWithCachedKeys) {
  std::mt19937 random(4);
  for (const CacheTypeRow& type : list_cache_types()) {
    for (const std::size_t size : kAwkwardSizes) {
      SCOPED_TRACE(fmt::format("{} {}", type.name, size));
      const RandomBlock keys(type, RandomBlock::Cached::keys, size, random);
      const std::size_t count = keys.run.count;
      const std::size_t several = 1 + random() % 9;
      const std::vector<float> queries = random_floats(several * size, random);
      const std::size_t apart = count + 3;
      std::vector<float> scores(several * apart, 7.0F);
      type.kernels().compute_scores({queries.data(), size, several}, keys.run, size, 0.5F, scores.data(), apart);
      for (std::size_t q = 0; q < several; ++q) {
        for (std::size_t i = 0; i < count; ++i) {
          double score = 0;
          double magnitude = 1;
          for (std::size_t e = 0; e < size; ++e) {
            const double product = static_cast<double>(queries[q * size + e]) * keys(i, e, size) / 2;
            score += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(static_cast<double>(scores[q * apart + i]), score, 1e-5 * magnitude);
        }
        for (std::size_t i = count; i < apart; ++i) ASSERT_EQ(scores[q * apart + i], 7.0F);
        std::vector<float> alone(count);
        type.kernels().compute_scores({queries.data() + q * size, size, 1}, keys.run, size, 0.5F, alone.data(), count);
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), scores.begin() + static_cast<std::ptrdiff_t>(q * apart)));
      }
    }
  }
}

TEST_P(Kernels, CachedValuesAreWeightedAndAdded) {
  std::mt19937 random(4);
  for (const CacheTypeRow& type : list_cache_types()) {
    for (const std::size_t size : kAwkwardSizes) {
      SCOPED_TRACE(fmt::format("{} {}", type.name, size));
      const RandomBlock values(type, RandomBlock::Cached::values, size, random);
      const std::size_t several = 1 + random() % 9;
      const std::size_t apart = values.run.count + random() % 3;
      const std::vector<float> weights = random_floats(several * apart, random);
      const std::vector<float> before = random_floats(several * size, random);
      std::vector<float> sums = before;
      type.kernels().add_values({weights.data(), apart, several}, values.run, size, sums.data());
      for (std::size_t q = 0; q < several; ++q) {
        for (std::size_t e = 0; e < size; ++e) {
          double expected = static_cast<double>(before[q * size + e]);
          double magnitude = 1;
          for (std::size_t i = 0; i < values.run.count; ++i) {
            const double product = static_cast<double>(weights[q * apart + i]) * values(i, e, size);
            expected += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(static_cast<double>(sums[q * size + e]), expected, 1e-5 * magnitude);
        }
        std::vector<float> alone(before.begin() + static_cast<std::ptrdiff_t>(q * size),
                                 before.begin() + static_cast<std::ptrdiff_t>((q + 1) * size));
        type.kernels().add_values({weights.data() + q * apart, apart, 1}, values.run, size, alone.data());
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), sums.begin() + static_cast<std::ptrdiff_t>(q * size)));
      }
    }
  }
}

// Codes of 8 bits follow their definition, and are the same on every processor.
TEST_P(Kernels, CodesOfACacheAreTheNearest) {
  std::mt19937 random(6);
  for (const std::size_t size : kAwkwardSizes) {
    for (const float magnitude : {1.0F, 1e30F, 1e-30F}) {
      std::vector<float> numbers = random_floats(size, random);
      for (float& number : numbers) number *= magnitude;
      std::vector<std::int8_t> codes(size);
      std::vector<float> scales((size + 31) / 32);
      encode_q8(numbers.data(), size, codes.data(), scales.data());
      for (std::size_t i = 0; i < size; ++i) {
        float largest = 0;
        for (std::size_t j = i / 32 * 32; j < std::min(size, i / 32 * 32 + 32); ++j)
          largest = std::max(largest, std::abs(numbers[j]));
        const float scale = largest / 127;
        ASSERT_EQ(scales[i / 32], scale);
        const float code = scale == 0 ? 0 : std::nearbyint(numbers[i] / scale);
        ASSERT_EQ(static_cast<float>(codes[i]), code) << i;
      }
    }
  }
}

TEST_P(Kernels, CodesOfACacheDoNotHideWhatIsNoNumber) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < 40; ++at) {
      std::vector<float> numbers(40, 1.0F);
      numbers[at] = bad;
      std::vector<std::int8_t> codes(40);
      std::vector<float> scales(2);
      encode_q8(numbers.data(), 40, codes.data(), scales.data());
      EXPECT_TRUE(std::isnan(scales[at / 32]));
      EXPECT_EQ(scales[1 - at / 32], 1.0F / 127);
    }
  }
}

TEST_P(Kernels, WeightedRowsAreAdded) {
  std::mt19937 random(4);
  for (const std::size_t size : kAwkwardSizes) {
    const std::size_t count = random() % 70;
    const std::size_t stride = size + random() % 5;
    const std::size_t several = 1 + random() % 9;
    const std::size_t apart = count + random() % 3;
    const std::vector<float> numbers = random_floats(count * stride + size, random);
    const std::vector<float> weights = random_floats(several * apart, random);
    const FloatRows rows = {numbers.data(), stride, count};
    const std::vector<float> before = random_floats(several * size, random);
    std::vector<float> sums = before;
    add_weighted_rows({weights.data(), apart, several}, rows, size, sums.data());
    for (std::size_t q = 0; q < several; ++q) {
      for (std::size_t d = 0; d < size; ++d) {
        double expected = static_cast<double>(before[q * size + d]);
        double magnitude = 1;
        for (std::size_t i = 0; i < count; ++i) {
          const double product =
              static_cast<double>(weights[q * apart + i]) * static_cast<double>(numbers[i * stride + d]);
          expected += product;
          magnitude += std::abs(product);
        }
        ASSERT_NEAR(static_cast<double>(sums[q * size + d]), expected, 1e-5 * magnitude);
      }
      std::vector<float> alone(before.begin() + static_cast<std::ptrdiff_t>(q * size),
                               before.begin() + static_cast<std::ptrdiff_t>((q + 1) * size));
      add_weighted_rows({weights.data() + q * apart, apart, 1}, rows, size, alone.data());
      ASSERT_TRUE(std::equal(alone.begin(), alone.end(), sums.begin() + static_cast<std::ptrdiff_t>(q * size)));
    }
  }
}

TEST_P(Kernels, SoftmaxIsAccurate) {
  std::mt19937 random(5);
  apply_softmax(nullptr, 0);
  for (const std::size_t count : kAwkwardSizes) {
    std::vector<float> scores = random_floats(count, random);
    for (float& score : scores) score *= 10;
    const std::vector<float> before = scores;
    apply_softmax(scores.data(), count);
    double sum = 0;
    for (const float score : before) sum += std::exp(static_cast<double>(score));
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = std::exp(static_cast<double>(before[i])) / sum;
      ASSERT_NEAR(static_cast<double>(scores[i]), expected, 1e-6 * expected + 1e-37);
    }
  }
}

TEST_P(Kernels, SoftmaxDoesNotHideWhatIsNoNumber) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < 20; ++at) {
      std::vector<float> scores(20, 1.0F);
      scores[at] = bad;
      apply_softmax(scores.data(), scores.size());
      for (const float score : scores) EXPECT_TRUE(std::isnan(score));
    }
  }
}

// Scores of positions that are not seen are -infinity.
TEST_P(Kernels, ExponentialsDependOnWhatIsSeenAlone) {
  std::mt19937 random(6);
  const std::vector<float> scores = random_floats(192, random);
  const float sink = 0.75F;
  const float scale = 3;
  std::vector<float> alone = scores;
  const double sum = compute_exponentials(alone.data(), alone.size(), scale, &sink);
  double most = static_cast<double>(sink);
  for (const float score : scores) most = std::max(most, static_cast<double>(scale * score));
  double expected = std::exp(static_cast<double>(sink) - most);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp(static_cast<double>(scale) * static_cast<double>(scores[i]) - most);
    ASSERT_NEAR(static_cast<double>(alone[i]), weight, 1e-6 * weight);
    expected += weight;
  }
  EXPECT_NEAR(sum, expected, 1e-6 * expected);

  std::vector<float> among(64 + 192 + 64, -std::numeric_limits<float>::infinity());
  std::copy(scores.begin(), scores.end(), among.begin() + 64);
  EXPECT_EQ(compute_exponentials(among.data(), among.size(), scale, &sink), sum);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), among.begin() + 64));
  EXPECT_EQ(among.front(), 0.0F);
  EXPECT_EQ(among.back(), 0.0F);
}

// The rounding of such scores to float32 is far larger than an exponential can represent.
TEST_P(Kernels, ExponentialsOfHugeScoresAreNumbers) {
  const float scale = 0.0883883461F;  // of a head of 128 numbers
  for (const float huge : {3e9F, 3e10F, 7e12F, 1e30F}) {
    const float sink = 0.0625F * huge;
    for (const bool is_above_sink : {true, false}) {
      std::vector<float> scores(70, 0.5F * huge);
      scores[3] = scores[68] = is_above_sink ? huge : 0;
      EXPECT_EQ(compute_exponentials(scores.data(), scores.size(), scale, &sink), is_above_sink ? 2 : 1) << huge;
      EXPECT_EQ(scores[3], is_above_sink ? 1 : 0) << huge;
      EXPECT_EQ(scores[4], 0) << huge;
    }
  }
}

TEST_P(Kernels, SiluIsAccurateFarOutToo) {
  std::vector<float> gate;
  for (float x = -130; x <= 130; x += 0.37F) gate.push_back(x);
  for (const float x : {0.0F, -0.0F, 1e-20F, -1e-20F, 1e30F, -1e30F}) gate.push_back(x);
  const std::vector<float> before = gate;
  const std::vector<float> up(gate.size(), 2);
  gate_with_silu(gate.data(), up.data(), gate.size());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double x = static_cast<double>(before[i]);
    const double expected = 2 * x / (1 + std::exp(-x));
    // Below -88 the result, which is smaller than 1e-36, is only small.
    ASSERT_NEAR(static_cast<double>(gate[i]), expected, 2e-6 * std::abs(expected) + (x < -87 ? 1e-7 : 0)) << x;
  }
  std::vector<float> nan = {std::numeric_limits<float>::quiet_NaN()};
  gate_with_silu(nan.data(), up.data(), 1);
  EXPECT_TRUE(std::isnan(nan[0]));
}

}  // namespace
}  // namespace poise
