// Faults of scales, codes and other values, in parts made here.
#include "ops/verify_part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "codec/block_type.hpp"
#include "tensor/block_layout.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

Tensor codes(DType dtype, const std::vector<int>& bytes, std::uint64_t elements, const Affine& affine,
             std::optional<std::uint64_t> position = std::nullopt) {
  Tensor tensor = make_dense("w", {elements}, dtype, make_memory_blob(bytes_of(bytes), "w"));
  tensor.layout = make_affine(affine, position);
  return tensor;
}

// Returns the findings of the checks about the only part, which they see as `pieces`.
std::vector<BadValue> bad_values(const Tensor& tensor, const std::vector<std::vector<std::byte>>& pieces,
                                 bool complete = true) {
  const auto checks = make_value_checks(get_value_rules(tensor, tensor.parts.front()));
  std::uint64_t position = 0;
  for (const auto& piece : pieces) {
    for (const auto& check : checks) check->update(position, piece);
    position += piece.size();
  }
  std::vector<BadValue> bad;
  for (const auto& check : checks) check->report(complete, bad);
  return bad;
}

std::vector<std::string> problems_of(const Tensor& tensor) {
  std::vector<std::string> problems;
  for (const BadValue& bad : bad_values(tensor, {read_all(*tensor.parts.front().blob)}))
    problems.push_back(bad.problem);
  return problems;
}

std::vector<Finding> scale_of(const Tensor& tensor) { return layouts::affine.scheme_faults(tensor); }

// A q4_0 block is a float16 scale and 16 bytes of codes. Pieces may end anywhere in one.
TEST(VerifyValues, ScalesOfBlocksAreFinite) {
  std::vector<std::byte> bytes(std::size_t{40} * 18, std::byte{0x21});
  for (std::size_t block = 0; block < 40; ++block) bytes[18 * block + 1] = std::byte{0x3c};
  const auto tensor = [&] {
    return make_blocks("w", {40, 32}, *find_named_block_type("q4_0"), make_memory_blob(bytes, "w"));
  };
  EXPECT_THAT(problems_of(tensor()), IsEmpty());
  bytes[18 * 37 + 1] = std::byte{0x7e};
  EXPECT_THAT(problems_of(tensor()), ElementsAre("element 1184 is not finite, and 31 more are"));
  const auto piece = [&](std::size_t begin, std::size_t end) {
    return std::vector<std::byte>(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const auto bad = bad_values(tensor(), {piece(0, 5), piece(5, 7), piece(7, 18 * 37 + 1),
                                         piece(18 * 37 + 1, 18 * 37 + 2), piece(18 * 37 + 2, bytes.size())});
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].severity, Severity::warning);
  EXPECT_EQ(bad[0].byte, 18U * 37);
}

TEST(VerifyValues, GoodCodesHaveNoFault) {
  for (const Tensor& tensor : {codes(DType::qint8, {1, 255, 3}, 3, {0.5F, 0, 0, false}),
                               codes(DType::qint4, {0x21, 0x03}, 3, {0.5F, 0, 0, true}),
                               codes(DType::qint4, {7, 0xf9, 0}, 3, {0, 0, 0, false})}) {
    EXPECT_THAT(problems_of(tensor), IsEmpty());
    EXPECT_THAT(scale_of(tensor), IsEmpty());
  }
}

TEST(VerifyValues, TheScaleIsFiniteAndNotNegative) {
  const auto tells = [](const char* text) { return ElementsAre(testing::Field(&Finding::message, HasSubstr(text))); };
  for (const float delta : {-0.5F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(scale_of(codes(DType::qint8, {1}, 1, {delta, 0, 0, false})), tells("tensor w: delta is")) << delta;
  }
  EXPECT_THAT(scale_of(codes(DType::qint8, {1}, 1, {1, 0, std::numeric_limits<float>::infinity(), false})),
              tells("min and max are"));
  // A NaN has no sign for people.
  const float nan = std::copysign(std::numeric_limits<float>::quiet_NaN(), -1.0F);
  EXPECT_THAT(scale_of(codes(DType::qint8, {1}, 1, {nan, 0, 0, false})), tells("delta is nan,"));
  EXPECT_THAT(scale_of(codes(DType::qint8, {1}, 1, {1, nan, nan, false})), tells("min and max are nan and nan,"));
}

TEST(VerifyValues, AFaultOfTheScaleIsWhereTheScaleIs) {
  const std::vector<Finding> findings = scale_of(codes(DType::qint8, {1}, 1, {-1, 0, 0, false}, 0x123));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].offset, 0x123U);
}

TEST(VerifyValues, TheUnusedHalfIsZero) {
  EXPECT_THAT(problems_of(codes(DType::qint4, {0x21, 0x13}, 3, {1, 0, 0, true})),
              ElementsAre("the high half of the last byte holds no code: expected 0, found 1"));
  EXPECT_THAT(problems_of(codes(DType::qint4, {0x21, 0x13}, 4, {1, 0, 0, true})), IsEmpty());
  const Tensor floats = make_dense("w", {3}, DType::f4_e2m1, make_memory_blob(bytes_of({0x21, 0x13}), "w"));
  EXPECT_THAT(problems_of(floats), ElementsAre("the unused half of the last byte is not zero"));
  EXPECT_THAT(bad_values(floats, {bytes_of({0x21})}, false),
              IsEmpty());  // that was not the last byte
}

TEST(VerifyValues, CodesOfAByteFitFourBits) {
  EXPECT_THAT(problems_of(codes(DType::qint4, {7, 8, 0xf8}, 3, {1, 0, 0, false})),
              ElementsAre("element 1: the code 8 does not fit 4 bits"));
  EXPECT_THAT(problems_of(codes(DType::qint4, {15, 16}, 2, {1, -1, 14, false})),
              ElementsAre("element 1: the code 16 does not fit 4 bits"));
}

TEST(VerifyValues, CountOverAllPieces) {
  const Tensor booleans = make_dense("w", {6}, DType::boolean, make_memory_blob(bytes_of({0, 1, 0, 2, 3, 1}), "w"));
  const std::vector<BadValue> bad = bad_values(booleans, {bytes_of({0, 1}), bytes_of({0, 2}), bytes_of({3, 1})});
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].problem, "element 3 is neither 0 nor 1, and 1 more are");
  EXPECT_EQ(bad[0].byte, 3U);
  EXPECT_EQ(bad[0].severity, Severity::error);
}

TEST(VerifyValues, FloatsThatAreNotFiniteAreWarnings) {
  const auto bits = std::bit_cast<std::array<std::byte, 4>>(std::numeric_limits<float>::infinity());
  const std::vector<std::byte> infinity(bits.begin(), bits.end());
  const Tensor floats = make_dense("w", {2}, DType::f32, make_memory_blob(std::vector<std::byte>(8), "w"));
  const std::vector<BadValue> bad = bad_values(floats, {std::vector<std::byte>(4), infinity});
  ASSERT_EQ(bad.size(), 1U);
  EXPECT_EQ(bad[0].problem, "element 1 is not finite");
  EXPECT_EQ(bad[0].byte, 4U);
  EXPECT_EQ(bad[0].severity, Severity::warning);
}

}  // namespace
}  // namespace poise
