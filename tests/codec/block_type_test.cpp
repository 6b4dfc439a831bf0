// Block types compared with ggml: golden_blocks.inc holds the results of libggml-base.so of llama.cpp v0.5.0 for the
// numbers and bytes that are made here.
#include "codec/block_type.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codec/block_fields.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/half.hpp"
#include "pack/digest.hpp"
#include "support/bytes.hpp"
#include "support/instruction_set.hpp"

namespace poise {
namespace {

struct Golden {
  const char* name;
  std::uint32_t number;
  std::size_t elements;
  std::size_t bytes;
  const char* random_decoded;  // SHA-256 of what 256 blocks of random bytes decode to, each NaN as 0x7fc00000
  const char* block;
  std::array<std::uint32_t, 8> decoded;  // of its numbers, from the first to the last
  const char* encoded;                   // SHA-256 of the blocks that rows_to_encode() become
  const char* encoded_by_importance;
};

constexpr Golden kGolden[] = {
#include "golden_blocks.inc"
};

// Is the same generator as in make_golden_blocks.py.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits(unsigned count) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_ >> (64 - count);
  }

 private:
  std::uint64_t state_;
};

std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t count) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits(8));
  return bytes;
}

std::uint32_t canonical_bits(float x) { return std::isnan(x) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(x); }

std::string digest(const std::vector<float>& numbers) {
  std::vector<std::uint32_t> bits;
  bits.reserve(numbers.size());
  for (const float x : numbers) bits.push_back(canonical_bits(x));
  return compute_sha256(std::as_bytes(std::span(bits)));
}

std::vector<float> decode(const BlockType& type, const std::vector<std::byte>& blocks) {
  std::vector<float> out(blocks.size() / type.bytes * type.elements);
  type.decode(blocks.data(), blocks.size() / type.bytes, out.data());
  return out;
}

// Uniform numbers add up to a bell: about -2 to 2, in steps of 2^-18.
float bell(Random& random) {
  std::int64_t sum = -(1 << 19);
  for (int i = 0; i < 4; ++i) sum += static_cast<std::int64_t>(random.bits(18));
  return std::ldexp(static_cast<float>(sum), -18);
}

constexpr std::size_t kRows = 12;
constexpr std::size_t kLength = 1024;

// Returns rows like those of models, of many scales, and rows of special cases.
std::vector<float> rows_to_encode() {
  Random random(1);
  std::vector<float> values;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kLength; ++i) {
      float x = bell(random);
      switch (row < 8 ? 0 : 4 * (row - 8) + i / 256 + 1) {
        case 0: x = std::ldexp(x, -2 * static_cast<int>(row)); break;
        case 1: x = 0; break;
        case 2: x = 0.5F; break;
        case 3: x = i % 256 == 77 ? 1.0F : 0.0F; break;
        case 4: x = std::abs(x); break;
        case 5: x = -std::abs(x); break;
        case 6: x = std::ldexp(x, 20); break;
        case 7: x = std::ldexp(x, -24); break;
        case 8: x = std::ldexp(x, -60); break;
        case 9: x = static_cast<float>(random.bits(2)) - 1; break;
        case 10: x = (static_cast<float>(random.bits(5)) - 16) / 2; break;
        case 11: x = i % 32 == 5 ? x * 64 : x / 64; break;
        case 12: x = x + 8; break;
        case 13: x = random.bits(1) != 0 ? x : 0.0F; break;
        case 14: x = std::ldexp(x, static_cast<int>(i / 16 % 16) - 8); break;
        case 15: x = i % 2 != 0 ? -1.0F : 1.0F; break;
        default: x = std::ldexp(x, -140); break;
      }
      values.push_back(x);
    }
  }
  return values;
}

std::vector<float> importance() {
  Random random(2);
  std::vector<float> weights;
  for (std::size_t i = 0; i < kLength; ++i)
    weights.push_back(random.bits(4) != 0 ? std::ldexp(static_cast<float>(random.bits(20)), -20) : 0.0F);
  return weights;
}

// Encodes rows of kLength numbers.
std::vector<std::byte> encode(const BlockType& type, std::span<const float> values, const float* weights) {
  std::vector<std::byte> blocks(values.size() / type.elements * type.bytes);
  type.encode({values.data(), values.size() / kLength, kLength, weights}, blocks.data());
  return blocks;
}

std::span<const std::byte> row_of(const BlockType& type, const std::vector<std::byte>& blocks, std::size_t row) {
  const std::size_t bytes = kLength / type.elements * type.bytes;
  return std::span(blocks).subspan(row * bytes, bytes);
}

TEST(BlockTypes, AreThoseOfGgml) {
  const auto types = list_block_types();
  ASSERT_EQ(types.size(), std::size(kGolden));
  for (std::size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(types[i].name, kGolden[i].name);
    EXPECT_EQ(types[i].number, kGolden[i].number) << types[i].name;
    EXPECT_EQ(types[i].elements, kGolden[i].elements) << types[i].name;
    EXPECT_EQ(types[i].bytes, kGolden[i].bytes) << types[i].name;
    EXPECT_EQ(types[i].decode == nullptr, types[i].name == "q8_1");
    EXPECT_EQ(types[i].encode == nullptr, std::string_view(kGolden[i].encoded).empty()) << types[i].name;
  }
}

TEST(BlockTypes, AreFoundByNameAndNumber) {
  std::set<const BlockType*> found;
  for (const BlockType& type : list_block_types()) {
    EXPECT_EQ(find_named_block_type(type.name), &type);
    EXPECT_EQ(find_numbered_block_type(type.number), &type);
    found.insert(find_named_block_type(type.name));
  }
  EXPECT_EQ(found.size(), list_block_types().size());
  EXPECT_EQ(find_named_block_type("Q4_0"), nullptr);
  EXPECT_EQ(find_named_block_type("f32"), nullptr);
  for (const std::uint32_t number : {0U, 1U, 4U, 5U, 24U, 28U, 30U, 31U, 36U, 38U, 43U, 0xffffffffU})
    EXPECT_EQ(find_numbered_block_type(number), nullptr) << number;
}

// Source: tensor_type_fallback() in src/llama-quant.cpp of llama.cpp v0.5.0.
TEST(BlockTypes, RowsThatAreNotWholeBlocksTakeTheFallbackOfLlamaQuantize) {
  const std::map<std::string_view, std::string_view> fallbacks = {
      {"tq1_0", "q4_0"},   {"tq2_0", "q4_0"},     {"q2_k", "q4_0"},    {"q3_k", "q4_0"},     {"iq4_xs", "iq4_nl"},
      {"iq3_s", "iq4_nl"}, {"iq3_xxs", "iq4_nl"}, {"iq2_s", "iq4_nl"}, {"iq2_xs", "iq4_nl"}, {"iq2_xxs", "iq4_nl"},
      {"iq1_m", "iq4_nl"}, {"iq1_s", "iq4_nl"},   {"q4_k", "q5_0"},    {"q5_k", "q5_1"},     {"q6_k", "q8_0"}};
  for (const BlockType& type : list_block_types()) {
    EXPECT_EQ(choose_block_type_for_rows(type, 3 * type.elements), &type) << type.name;
    EXPECT_EQ(choose_block_type_for_rows(type, 3 * type.elements + 1), nullptr) << type.name;
    const auto fallback = fallbacks.find(type.name);
    const BlockType* const expected = fallback == fallbacks.end() ? nullptr : find_named_block_type(fallback->second);
    EXPECT_EQ(expected == nullptr, fallback == fallbacks.end());
    EXPECT_EQ(type.fallback, expected == nullptr ? "" : expected->name) << type.name;
    if (expected == nullptr) continue;
    EXPECT_EQ(choose_block_type_for_rows(type, type.elements + expected->elements), expected) << type.name;
    EXPECT_TRUE(expected->encode != nullptr && expected->elements < type.elements) << type.name;
  }
}

// Source: tensor_requires_imatrix() in the same file.
TEST(BlockTypes, NeedAnImportanceWhereLlamaQuantizeDoes) {
  const std::set<std::string_view> need = {"iq3_xxs", "iq2_xxs", "iq2_xs", "iq2_s", "iq1_m", "iq1_s"};
  for (const BlockType& type : list_block_types())
    EXPECT_EQ(type.needs_importance, need.contains(type.name)) << type.name;
}

// The offsets are those that gguf-py/gguf/scripts/gguf_convert_endian.py swaps.
TEST(BlockTypes, AreSwappedWhereGgmlDefinesAByteOrder) {
  const std::map<std::string_view, std::vector<std::size_t>> swapped = {
      {"q4_0", {0}},   {"q8_0", {0}}, {"q4_k", {0, 2}}, {"q6_k", {208}},
      {"tq2_0", {64}}, {"q1_0", {0}}, {"mxfp4", {}},    {"nvfp4", {}}};
  for (const BlockType& type : list_block_types()) {
    const auto expected = swapped.find(type.name);
    ASSERT_EQ(type.swapped.has_value(), expected != swapped.end()) << type.name;
    if (!type.swapped) continue;
    const std::vector<std::byte> blocks = random_bytes(1, 3 * type.bytes);
    std::vector<std::byte> by_hand = blocks;
    for (std::size_t block = 0; block < 3; ++block) {
      for (const std::size_t offset : expected->second)
        std::swap(by_hand[block * type.bytes + offset], by_hand[block * type.bytes + offset + 1]);
    }
    std::vector<std::byte> result = blocks;
    swap_block_bytes(type, result);
    EXPECT_EQ(result, by_hand) << type.name;
  }
}

TEST(Halves, AreThoseOfTheReference) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    ASSERT_EQ(canonical_bits(convert_half(half)), canonical_bits(decode_f16(half))) << code;
    // The number itself, numbers around the middle to the next one, and NaN.
    const float x = decode_f16(half);
    const float middle = (x + decode_f16(static_cast<std::uint16_t>(half + 1))) / 2;
    for (const float y : {x, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e38F * middle)}) {
      if (std::isnan(y)) {
        ASSERT_EQ(round_to_half(y) & 0x7fff, 0x7e00) << code;
      } else {
        ASSERT_EQ(round_to_half(y), encode_f16(static_cast<double>(y))) << y;
      }
    }
  }
  for (const float x : {65519.996F, 65520.0F, 1e30F, 1e-30F, -65520.0F, 0x1p-25F, 0x1.000002p-25F}) {
    EXPECT_EQ(round_to_half(x), encode_f16(static_cast<double>(x))) << x;
  }
}

class BlockCodecs : public EachInstructionSet {};

TEST_P(BlockCodecs, DecodeBlocksAsGgml) {
  for (const Golden& golden : kGolden) {
    const BlockType& type = *find_numbered_block_type(golden.number);
    if (type.decode == nullptr) continue;
    const std::vector<float> numbers = decode(type, support::to_bytes(support::hex(golden.block)));
    ASSERT_EQ(numbers.size(), type.elements);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(numbers[i * (type.elements - 1) / 7]), golden.decoded[i])
          << type.name << " " << i;
    }
  }
}

TEST_P(BlockCodecs, DecodeAnyBytesAsGgml) {
  for (const Golden& golden : kGolden) {
    const BlockType& type = *find_numbered_block_type(golden.number);
    if (type.decode == nullptr) continue;
    EXPECT_EQ(digest(decode(type, random_bytes(type.number, 256 * type.bytes))), golden.random_decoded) << type.name;
  }
}

// A view decodes rows in pieces.
TEST_P(BlockCodecs, DecodeEachBlockByItself) {
  for (const BlockType& type : list_block_types()) {
    if (type.decode == nullptr) continue;
    const std::vector<std::byte> blocks = random_bytes(99, 5 * type.bytes);
    const std::vector<float> together = decode(type, blocks);
    std::vector<float> apart(together.size(), 1.0F);
    for (std::size_t block = 0; block < 5; ++block)
      type.decode(blocks.data() + block * type.bytes, 1, apart.data() + block * type.elements);
    EXPECT_EQ(digest(apart), digest(together)) << type.name;
    float untouched = 42;
    type.decode(blocks.data(), 0, &untouched);
    EXPECT_EQ(untouched, 42);
  }
}

// Leaves out the block whose codes ggml puts in the wrong places: make_golden_blocks.py says why.
std::string digest_of_blocks(const BlockType& type, std::vector<std::byte> blocks) {
  constexpr std::ptrdiff_t kZeroGroupsBlock = 34;
  const auto begin = blocks.begin() + kZeroGroupsBlock * static_cast<std::ptrdiff_t>(type.bytes);
  if (type.name == "iq3_s") blocks.erase(begin, begin + static_cast<std::ptrdiff_t>(type.bytes));
  return compute_sha256(blocks);
}

TEST_P(BlockCodecs, EncodeRowsAsGgml) {
  const std::vector<float> rows = rows_to_encode();
  const std::vector<float> weights = importance();
  for (const Golden& golden : kGolden) {
    const BlockType& type = *find_numbered_block_type(golden.number);
    if (type.encode == nullptr) continue;
    EXPECT_EQ(digest_of_blocks(type, encode(type, rows, nullptr)), golden.encoded) << type.name;
    EXPECT_EQ(digest_of_blocks(type, encode(type, rows, weights.data())), golden.encoded_by_importance) << type.name;
  }
}

// Each thread encodes some rows, and the last rows of a thread fill only part of a vector.
TEST_P(BlockCodecs, EncodeEachRowByItself) {
  const std::vector<float> rows = rows_to_encode();
  const std::vector<float> weights = importance();
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    const std::vector<std::byte> together = encode(type, rows, weights.data());
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::vector<std::byte> apart =
          encode(type, std::span(rows).subspan(row * kLength, kLength), weights.data());
      EXPECT_TRUE(std::ranges::equal(apart, row_of(type, together, row))) << type.name << " " << row;
    }
    // One block to a row.
    std::vector<std::byte> blocks(3 * type.bytes + 1, std::byte{0xaa});
    type.encode({rows.data(), 3, type.elements, weights.data()}, blocks.data());
    std::vector<std::byte> first(type.bytes);
    type.encode({rows.data(), 1, type.elements, weights.data()}, first.data());
    EXPECT_TRUE(std::equal(first.begin(), first.end(), blocks.begin())) << type.name;
    EXPECT_EQ(blocks.back(), std::byte{0xaa}) << type.name;
  }
}

TEST_P(BlockCodecs, NumbersThatAreNotFiniteHarmOnlyTheirRow) {
  std::vector<float> rows = rows_to_encode();
  const std::vector<float> weights = importance();
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::max()}) {
      std::vector<float> broken = rows;
      for (std::size_t i = 0; i < kLength; i += 37) broken[3 * kLength + i] = bad;
      for (const float* const each : {static_cast<const float*>(nullptr), weights.data()}) {
        const std::vector<std::byte> sound = encode(type, rows, each);
        const std::vector<std::byte> harmed = encode(type, broken, each);
        for (std::size_t row = 0; row < kRows; ++row) {
          if (row == 3) continue;
          EXPECT_TRUE(std::ranges::equal(row_of(type, sound, row), row_of(type, harmed, row)))
              << type.name << " " << row << " " << bad;
        }
      }
    }
  }
}

// The expected error is that of even steps from -3 to 3 times the numbers' root mean square: step / sqrt(12).
TEST_P(BlockCodecs, LoseLittle) {
  const std::map<std::string_view, int> kBits = {
      {"q4_0", 4},  {"q4_1", 4},   {"q5_0", 5},    {"q5_1", 5},  {"q8_0", 8},   {"q2_k", 2},
      {"q3_k", 3},  {"q4_k", 4},   {"q5_k", 5},    {"q6_k", 6},  {"iq4_nl", 4}, {"iq4_xs", 4},
      {"tq1_0", 1}, {"tq2_0", 1},  {"mxfp4", 4},   {"nvfp4", 4}, {"iq3_s", 3},  {"iq3_xxs", 3},
      {"iq2_s", 2}, {"iq2_xs", 2}, {"iq2_xxs", 2}, {"iq1_s", 1}, {"iq1_m", 1}};
  std::vector<float> rows(4 * kLength);
  Random random(5);
  for (float& x : rows) x = bell(random);
  const std::vector<float> weights(kLength, 1.0F);
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    for (const float* const each : {static_cast<const float*>(nullptr), weights.data()}) {
      const std::vector<float> decoded = decode(type, encode(type, rows, each));
      double error = 0;
      double squares = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        error += std::pow(static_cast<double>(rows[i] - decoded[i]), 2);
        squares += std::pow(static_cast<double>(rows[i]), 2);
      }
      EXPECT_LT(std::sqrt(error / squares), std::ldexp(6 / std::sqrt(12), -kBits.at(type.name)) * 1.04) << type.name;
    }
  }
}

// The ends of the range of float32, where products in the searches underflow and overflow.
TEST_P(BlockCodecs, EncodeTheSmallestNumbersAndGroupsOfZeros) {
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    for (const float x : {0.0F, -0.0F, 0x1p-149F, -0x1p-126F}) {
      const std::vector<float> decoded = decode(type, encode(type, std::vector<float>(kLength, x), nullptr));
      for (const float y : decoded) EXPECT_LE(std::abs(y), std::abs(x)) << type.name << " " << x;
    }
    // The groups before the last one of the first 256 numbers are zeros.
    std::vector<float> last(kLength, 0.0F);
    std::fill_n(last.begin() + 224, 32, 1.0F);
    const std::vector<float> decoded = decode(type, encode(type, last, nullptr));
    for (std::size_t i = 224; i < 256; ++i) EXPECT_NEAR(decoded[i], 1, 0.75) << type.name << " " << i;
    for (std::size_t i = 0; i < 224; ++i) EXPECT_NEAR(decoded[i], 0, 0.3) << type.name << " " << i;
  }
}

// Codes of decoded numbers lose no more than the codes of the numbers themselves.
TEST_P(BlockCodecs, LoseNoMoreTheSecondTime) {
  std::vector<float> rows(4 * kLength);
  Random random(6);
  for (float& x : rows) x = bell(random);
  const auto measure = [](const std::vector<float>& x, const std::vector<float>& y) {
    double error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) error += std::pow(static_cast<double>(x[i] - y[i]), 2);
    return error;
  };
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    const std::vector<float> once = decode(type, encode(type, rows, nullptr));
    const std::vector<float> twice = decode(type, encode(type, once, nullptr));
    EXPECT_LE(measure(once, twice), measure(rows, once)) << type.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Codec, BlockCodecs, every_instruction_set(), instruction_set_name);

TEST(BlockFields, FillTheBlocksOfEveryType) {
  for (const BlockType& type : list_block_types()) {
    std::size_t bytes = 0;
    for (const BlockField& field : list_block_fields(type)) bytes += field.count * info(field.dtype).bits / 8;
    EXPECT_EQ(bytes, type.bytes) << type.name;
  }
}

}  // namespace
}  // namespace poise
