// Products with ggml's blocks: those of the numbers that the block type's decoder makes, which tests/codec compares
// with ggml.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include "codec/block_type.hpp"
#include "kernels/product.hpp"
#include "kernels/token_counts.hpp"
#include "support/instruction_set.hpp"
#include "support/units.hpp"

namespace poise {
namespace {

constexpr std::size_t kRows = 7;
constexpr std::size_t kColumns = 512;

// Returns how far the rounding of x moves the product of a row and one of `tokens` tokens, at most: half a step of x
// for each weight. Tiles round both to bfloat16.
double rounding_of_x(const StoredRows& matrix, const float* x, const float* weights, std::size_t tokens = 1) {
  const KernelInput input(matrix, tokens);
  const KernelInput::Form form = input.form();
  if (form == KernelInput::Form::floats) return 0;
  if (form == KernelInput::Form::tiles) {
    double sum = 0;
    for (std::size_t i = 0; i < matrix.columns; ++i)
      sum += std::abs(static_cast<double>(x[i]) * static_cast<double>(weights[i]));
    return 0x1.02p-7 * sum;
  }
  const bool panels = form == KernelInput::Form::panels;
  const bool bytes = panels ? input.as<KernelInput::Panels>().layout.integers == PanelIntegers::bytes
                            : form == KernelInput::Form::bytes;
  const std::size_t columns = panels  ? input.as<KernelInput::Panels>().layout.step
                              : bytes ? KernelInput::kByteBlock
                                      : KernelInput::kIntegerBlock;
  double moved = 0;
  for (std::size_t begin = 0; begin < matrix.columns; begin += columns) {
    double largest = 0;
    double sum_of_weights = 0;
    for (std::size_t i = begin; i < std::min(matrix.columns, begin + columns); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(x[i])));
      sum_of_weights += std::abs(static_cast<double>(weights[i]));
    }
    moved += largest / (bytes ? 254 : panels ? 65278 : 65534) * sum_of_weights;
  }
  return moved;
}

// Returns blocks that the type's encoder made, so that their scales are sane.
std::vector<std::byte> blocks_of(const BlockType& type, std::mt19937& random) {
  std::vector<float> numbers(kRows * kColumns);
  for (float& number : numbers) number = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0F;
  std::vector<std::byte> blocks(kRows * kColumns / type.elements * type.bytes);
  type.encode({numbers.data(), kRows, kColumns, nullptr}, blocks.data());
  return blocks;
}

TEST(Blocks, ProductsAreThoseOfTheDecodedNumbers) {
  std::mt19937 random(1);
  for (const BlockType& type : list_block_types()) {
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
      for (std::size_t t = 0; t < tokens; t += KernelInput::kTogether)
        input.convert(x.data(), t, std::min(tokens, t + KernelInput::kTogether));
      std::vector<float> y(tokens * kRows);
      multiply_rows(matrix, 0, kRows, input, y.data(), kRows);
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t r = 0; r < kRows; ++r) {
          double expected = 0;
          double size = 0;
          for (std::size_t i = 0; i < kColumns; ++i) {
            const double product =
                static_cast<double>(decoded[r * kColumns + i]) * static_cast<double>(x[t * kColumns + i]);
            expected += product;
            size += std::abs(product);
          }
          const double moved = rounding_of_x(matrix, x.data() + t * kColumns, decoded.data() + r * kColumns, tokens);
          EXPECT_NEAR(y[t * kRows + r], expected, 1.0001 * moved + 4e-5 * size) << t << " " << r;
        }
      }
    }
  }
}

TEST(Blocks, AnyColumnsOfARowAreDecoded) {
  std::mt19937 random(2);
  for (const std::string_view name : {"q4_0", "q6_k", "q2_k"}) {
    const BlockType& type = *find_named_block_type(name);
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

// Runs with every kind of processor that this one can stand in for. The expected numbers are float64 products of the
// numbers that the type's decoder makes.
class BlockProducts : public EachInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Targets, BlockProducts, every_instruction_set(), instruction_set_name);

// Holds blocks at an odd address that end where their memory ends.
struct Blocks {
  Blocks(const BlockType& block_type, std::size_t row_count, std::size_t columns)
      : type(block_type), rows(row_count), bytes(1 + row_count * columns / block_type.elements * block_type.bytes) {
    stored = {.storage = Storage::blocks, .data = bytes.data() + 1, .columns = columns, .blocks = &type};
  }

  std::vector<float> decoded() const {
    std::vector<float> numbers(rows * stored.columns);
    type.decode(stored.data, numbers.size() / type.elements, numbers.data());
    return numbers;
  }
  // Returns the products of x and rows [first, last); those of other rows are -1.
  std::vector<float> times(const std::vector<float>& x, std::size_t first, std::size_t last) const {
    const std::size_t tokens = x.size() / stored.columns;
    KernelInput input(stored, tokens);
    input.convert(x.data(), 0, tokens);
    std::vector<float> y(tokens * rows, -1.0F);
    multiply_rows(stored, first, last, input, y.data() + first, rows);
    return y;
  }

  const BlockType& type;
  std::size_t rows;
  std::vector<std::byte> bytes;
  StoredRows stored;
};

// Expects sums of products, up to the rounding of x and of float32 sums of codes, offsets and minimums, each below four
// times the largest number of the block. A row with a number that is not finite has a sum that is not.
void expect_products(const Blocks& blocks, const std::vector<float>& weights, const std::vector<float>& x,
                     const std::vector<float>& y, std::size_t token = 0) {
  const std::size_t columns = blocks.stored.columns;
  const float* const x_of_token = x.data() + token * columns;
  const float* const y_of_token = y.data() + token * blocks.rows;
  for (std::size_t r = 0; r < blocks.rows; ++r) {
    double expected = 0;
    double magnitude = 0;
    for (std::size_t begin = 0; begin < columns; begin += blocks.type.elements) {
      double largest = 0;
      double sum_of_x = 0;
      for (std::size_t i = begin; i < begin + blocks.type.elements; ++i) {
        const auto weight = static_cast<double>(weights[r * columns + i]);
        expected += weight * static_cast<double>(x_of_token[i]);
        largest = std::isfinite(weight) ? std::max(largest, std::abs(weight)) : weight;
        sum_of_x += std::abs(static_cast<double>(x_of_token[i]));
      }
      magnitude += 4 * largest * sum_of_x;
    }
    if (magnitude > 1e36 && std::isfinite(magnitude)) continue;  // float32 sums may not hold them
    if (std::isfinite(expected)) {
      const double steps = rounding_of_x(blocks.stored, x_of_token, weights.data() + r * columns, x.size() / columns);
      ASSERT_NEAR(static_cast<double>(y_of_token[r]), expected, 1.0001 * steps + 2e-6 * magnitude + 1e-30)
          << blocks.type.name << " row " << r;
    } else {
      ASSERT_FALSE(std::isfinite(y_of_token[r])) << blocks.type.name << " row " << r;
    }
  }
}

std::vector<float> some_x(std::size_t count, std::mt19937& random) {
  std::vector<float> x(count);
  for (float& number : x) number = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 256.0F;
  return x;
}

// Any bytes are blocks: scales of any size, infinite ones and NaN among them.
TEST_P(BlockProducts, OfAnyBytes) {
  std::mt19937 random(3);
  for (const BlockType& type : list_block_types()) {
    if (type.decode == nullptr) continue;
    for (const std::size_t count : {1U, 2U, 3U, 5U, 32U, 33U, 40U}) {
      const std::size_t columns = count * type.elements;
      if (columns > 4096) continue;
      Blocks blocks(type, 1 + random() % 7, columns);
      for (std::byte& byte : blocks.bytes) byte = static_cast<std::byte>(random());
      const std::vector<float> x = some_x(columns, random);
      const std::vector<float> y = blocks.times(x, 0, blocks.rows);
      expect_products(blocks, blocks.decoded(), x, y);
      // The same bits for any part of the rows.
      const std::size_t first = random() % blocks.rows;
      const std::vector<float> later = blocks.times(x, first, blocks.rows);
      for (std::size_t r = 0; r < blocks.rows; ++r) {
        if (r < first) {
          ASSERT_EQ(later[r], -1.0F);
        } else {
          ASSERT_TRUE(later[r] == y[r] || (std::isnan(later[r]) && std::isnan(y[r]))) << type.name << " row " << r;
        }
      }
    }
  }
}

// Exact products are sums of the numbers that the type's decoder makes times x as it is, in float32: alone and among
// others.
TEST_P(BlockProducts, AreOfFloat32WhereTheyAreToBeExact) {
  std::mt19937 random(7);
  for (const BlockType& type : list_block_types()) {
    if (type.decode == nullptr) continue;
    for (const std::size_t tokens : {1U, 3U, 33U}) {
      const std::size_t columns = 3 * type.elements;
      Blocks blocks(type, 5, columns);
      for (std::byte& byte : blocks.bytes) byte = static_cast<std::byte>(random());
      const std::vector<float> weights = blocks.decoded();
      const std::vector<float> x = some_x(tokens * columns, random);
      KernelInput input(blocks.stored, tokens, Precision::exact);
      ASSERT_EQ(input.form(), KernelInput::Form::floats);
      for (std::size_t t = 0; t < tokens; t += KernelInput::kTogether)
        input.convert(x.data(), t, std::min(tokens, t + KernelInput::kTogether));
      std::vector<float> y(tokens * blocks.rows);
      multiply_rows(blocks.stored, 0, blocks.rows, input, y.data(), blocks.rows);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const float* const row = weights.data() + i % blocks.rows * columns;
        const float* const token = x.data() + i / blocks.rows * columns;
        double expected = 0;
        double magnitude = 0;
        for (std::size_t c = 0; c < columns; ++c) {
          const double product = static_cast<double>(row[c]) * static_cast<double>(token[c]);
          expected += product;
          magnitude += std::abs(product);
        }
        if (!std::isfinite(expected)) {
          ASSERT_FALSE(std::isfinite(y[i])) << type.name << " " << i;
        } else if (magnitude < 1e36) {
          ASSERT_NEAR(static_cast<double>(y[i]), expected, 2e-6 * magnitude + 1e-30) << type.name << " " << i;
        }
      }
    }
  }
}

// Codes of six bits and fewer take x in 8 bits, those of eight bits in 16; and both are no worse than their rounding of
// x.
TEST_P(BlockProducts, TakeXInAsManyBitsAsTheirCodesDeserve) {
  for (const BlockType& type : list_block_types()) {
    if (type.decode == nullptr) continue;
    const StoredRows matrix = {.storage = Storage::blocks, .columns = 2 * type.elements, .blocks = &type};
    const bool eight_bits = type.name == "q8_0" || type.name == "q8_k";
    if (!has_integer_product(matrix)) continue;
    EXPECT_EQ(KernelInput(matrix, 1).form(), eight_bits ? KernelInput::Form::words : KernelInput::Form::bytes)
        << type.name;
  }
}

// x of one column in 32 and zero in the others has no error of rounding: each weight comes out as it was stored.
TEST_P(BlockProducts, OfOneColumnAreItsWeights) {
  std::mt19937 random(5);
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr || type.decode == nullptr) continue;
    const std::size_t columns = std::max<std::size_t>(64, type.elements);
    Blocks blocks(type, 3, columns);
    std::vector<float> numbers(3 * columns);
    for (float& number : numbers) number = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0F;
    type.encode({numbers.data(), 3, columns, nullptr}, blocks.bytes.data() + 1);
    const std::vector<float> weights = blocks.decoded();
    for (std::size_t column = 0; column < columns; ++column) {
      std::vector<float> x(columns);
      x[column] = column % 2 == 0 ? 2.0F : -2.0F;
      const std::vector<float> y = blocks.times(x, 0, 3);
      for (std::size_t r = 0; r < 3; ++r)
        ASSERT_NEAR(y[r], weights[r * columns + column] * x[column], 1e-5) << type.name << " " << column;
    }
  }
}

// Holds the places of a block's float16 numbers in docs/formats/gguf.md.
struct ScaledType {
  std::string_view name;
  std::vector<std::size_t> halves;
};

const std::vector<ScaledType> kScaledTypes = {
    {"q4_0", {0}},   {"q4_1", {0, 2}}, {"q5_0", {0}},    {"q5_1", {0, 2}}, {"q8_0", {0}},   {"q2_k", {80, 82}},
    {"q3_k", {108}}, {"q4_k", {0, 2}}, {"q5_k", {0, 2}}, {"q6_k", {208}},  {"iq4_nl", {0}}, {"iq4_xs", {0}},
    {"tq1_0", {52}}, {"tq2_0", {64}},  {"q1_0", {0}},    {"q2_0", {0}},    {"mxfp4", {}},   {"iq2_xxs", {0}},
    {"iq2_xs", {0}}, {"iq2_s", {0}},   {"iq3_xxs", {0}}, {"iq3_s", {0}}};

// Every byte is the same, and the float16 numbers are 1.
Blocks filled_blocks(const ScaledType& scaled, unsigned code) {
  const BlockType& type = *find_named_block_type(scaled.name);
  Blocks blocks(type, 5, 2048);
  std::ranges::fill(blocks.bytes, static_cast<std::byte>(code));
  for (std::size_t block = 1; block < blocks.bytes.size(); block += type.bytes) {
    for (const std::size_t half : scaled.halves) {
      blocks.bytes[block + half] = std::byte{0x00};
      blocks.bytes[block + half + 1] = std::byte{0x3c};
    }
  }
  return blocks;
}

// The largest codes and group scales times the largest x in every lane, with finite scales: sums of integers must not
// overflow.
TEST_P(BlockProducts, AtTheLimitOfIntegers) {
  for (const ScaledType& scaled : kScaledTypes) {
    for (const unsigned code : {0x00U, 0x7fU, 0x80U, 0x88U, 0xf0U, 0x0fU, 0xffU}) {
      const Blocks blocks = filled_blocks(scaled, code);
      for (const float sign : {3.0F, -3.0F}) {
        const std::vector<float> x(2048, sign);
        expect_products(blocks, blocks.decoded(), x, blocks.times(x, 0, blocks.rows));
      }
    }
  }
}

// Multiplies the largest codes of Q6_K by its largest scale. The other tests do not come near these products.
TEST_P(BlockProducts, OfTheLargestScaleOfQ6K) {
  Blocks blocks(*find_named_block_type("q6_k"), 5, 2048);
  for (std::size_t block = 1; block < blocks.bytes.size(); block += blocks.type.bytes) {
    std::fill_n(blocks.bytes.begin() + static_cast<std::ptrdiff_t>(block), 192, std::byte{0xff});
    std::fill_n(blocks.bytes.begin() + static_cast<std::ptrdiff_t>(block + 192), 16, std::byte{0x80});
    blocks.bytes[block + 208] = std::byte{0x00};
    blocks.bytes[block + 209] = std::byte{0x3c};  // 1
  }
  for (const float sign : {3.0F, -3.0F}) {
    const std::vector<float> x(2048, sign);
    expect_products(blocks, blocks.decoded(), x, blocks.times(x, 0, blocks.rows));
  }
}

// Multiplies several tokens, with whatever this processor can use of itself.
class BlockPanels : public ::testing::TestWithParam<Unit> {
  ChosenUnit chosen_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Targets, BlockPanels, ::testing::ValuesIn(every_unit()),
                         [](const auto& unit) { return name_of(unit.param); });

// Any bytes, any number of last tokens, more rows than a panel has and blocks that end before a panel does. A token has
// the same bits in any company of few or of many, and for any part of the rows.
TEST_P(BlockPanels, OfAnyBytes) {
  std::mt19937 random(13);
  for (const BlockType& type : list_block_types()) {
    if (type.decode == nullptr) continue;
    for (const std::size_t tokens : {2U, 4U, 7U, 13U, 17U, 22U, 35U}) {
      const std::size_t columns = (1 + random() % (700 / type.elements)) * type.elements;
      Blocks blocks(type, 1 + random() % 40, columns);
      for (std::byte& byte : blocks.bytes) byte = static_cast<std::byte>(random());
      // float32 has no number for six times the largest scale, where sums of products may have one.
      for (std::size_t i = 1; type.name == "mxfp4" && i < blocks.bytes.size(); i += type.bytes)
        blocks.bytes[i] &= std::byte{0x7f};
      const std::vector<float> weights = blocks.decoded();
      const std::vector<float> x = some_x(tokens * columns, random);
      const std::vector<float> y = blocks.times(x, 0, blocks.rows);
      const std::size_t first = random() % blocks.rows;
      const std::vector<float> later = blocks.times(x, first, blocks.rows);
      const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
      for (std::size_t t = 0; t < tokens; ++t) {
        expect_products(blocks, weights, x, y, t);
        std::vector<float> company(x.begin() + static_cast<std::ptrdiff_t>(t * columns),
                                   x.begin() + static_cast<std::ptrdiff_t>((t + 1) * columns));
        const std::size_t count = equivalent_count(blocks.stored, tokens);
        for (std::size_t i = 1; i < count; ++i)
          company.insert(company.end(), x.begin(), x.begin() + static_cast<std::ptrdiff_t>(columns));
        const std::vector<float> in_company = blocks.times(company, 0, blocks.rows);
        for (std::size_t r = 0; r < blocks.rows; ++r) {
          const std::size_t at = t * blocks.rows + r;
          ASSERT_TRUE(same(in_company[r], y[at])) << type.name << " token " << t << " of " << tokens << ", row " << r
                                                  << ": " << in_company[r] << ", " << y[at];
          ASSERT_TRUE(same(later[at], r < first ? -1.0F : y[at])) << type.name << " token " << t << " row " << r;
        }
      }
    }
  }
}

TEST_P(BlockPanels, OfOneColumnAreItsWeights) {
  std::mt19937 random(15);
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr || type.decode == nullptr) continue;
    const std::size_t columns = std::max<std::size_t>(64, type.elements);
    Blocks blocks(type, 3, columns);
    std::vector<float> numbers(3 * columns);
    for (float& number : numbers) number = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0F;
    type.encode({numbers.data(), 3, columns, nullptr}, blocks.bytes.data() + 1);
    const std::vector<float> weights = blocks.decoded();
    std::vector<float> x(columns * columns);  // a token for each column
    for (std::size_t i = 0; i < columns; ++i) x[i * columns + i] = i % 2 == 0 ? 2.0F : -2.0F;
    const std::vector<float> y = blocks.times(x, 0, 3);
    for (std::size_t i = 0; i < columns; ++i) {
      for (std::size_t r = 0; r < 3; ++r)
        ASSERT_NEAR(y[i * 3 + r], weights[r * columns + i] * x[i * columns + i],
                    1e-5 + rounding_of_x(blocks.stored, x.data() + i * columns, weights.data() + r * columns, columns))
            << type.name << " " << i;
    }
  }
}

// Multiplies the largest codes and scales by the largest x in every lane.
TEST_P(BlockPanels, AtTheLimitOfIntegers) {
  for (const ScaledType& scaled : kScaledTypes) {
    for (const unsigned code : {0x00U, 0x7fU, 0x80U, 0x88U, 0xf0U, 0x0fU, 0xffU}) {
      const Blocks blocks = filled_blocks(scaled, code);
      const std::vector<float> weights = blocks.decoded();
      for (const std::size_t tokens : {std::size_t{2}, kMany}) {
        std::vector<float> x(tokens * blocks.stored.columns, 3.0F);
        std::fill_n(x.begin(), blocks.stored.columns, -3.0F);
        const std::vector<float> y = blocks.times(x, 0, blocks.rows);
        expect_products(blocks, weights, x, y, 0);
        expect_products(blocks, weights, x, y, tokens - 1);
      }
    }
  }
}

}  // namespace
}  // namespace poise
