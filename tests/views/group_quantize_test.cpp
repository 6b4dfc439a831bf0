// Expected codes, scales and zero points are worked out by hand from the rule in groups.hpp.
#include "views/groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include <poise/error.hpp>

#include "support/errors.hpp"
#include "tensor/group_scheme.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
BlobPtr blob_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_memory_blob(std::move(bytes), "w");
}

Tensor matrix(Shape shape, const std::vector<float>& values) {
  return make_dense("w", std::move(shape), DType::f32, blob_of(values));
}

template <typename T>
std::vector<T> values_of(const BlobPtr& blob) {
  const auto bytes = read_all(*blob);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

constexpr std::uint16_t kOne = 0x3c00;    // 1 in float16
constexpr std::uint16_t kThree = 0x4200;  // 3

// Returns the loss of all codes of a tensor.
QuantizationError lost(const LossyBlob<QuantizationError>& codes) {
  QuantizationError error;
  std::vector<std::byte> bytes(codes.size());
  codes.read_measured(0, bytes, &error);
  return error;
}

TEST(GroupQuantize, FourBitsFromTheSmallestToTheLargestValue) {
  // max - min = 15: the scale is 1, the zero point 3.
  const Tensor tensor = quantize_groups(matrix({1, 8}, {-3, 12, 0, 0.5F, 1.5F, -0.5F, 2.6F, 11}), {4, 8});
  EXPECT_EQ(tensor.layout, Layout::quantized_group);
  EXPECT_EQ(*tensor.attributes.find("packing"), Value("8_per_i32"));
  EXPECT_THAT(values_of<std::uint16_t>(tensor.require("scales").blob), ElementsAre(kOne));
  EXPECT_THAT(values_of<std::uint16_t>(tensor.require("zeros").blob), ElementsAre(kThree));
  // Codes 0, 15, 3, 3 (half to even), 5, 3, 6, 14, from the low bits up.
  EXPECT_THAT(values_of<std::uint32_t>(tensor.require("packed_weight").blob), ElementsAre(0xe63533f0));
  EXPECT_THAT(values_of<float>(make_dense_blob(tensor, DType::f32)), ElementsAre(-3, 12, 0, 0, 2, 0, 3, 11));
}

TEST(GroupQuantize, EightBitsAndAGroupOfOneSign) {
  // Zero stays inside: from 0 to 255.
  const Tensor tensor = quantize_groups(matrix({1, 4}, {255, 1, 7, 200.4F}), {8, 4});
  EXPECT_EQ(*tensor.attributes.find("packing"), Value("4_per_i32"));
  EXPECT_THAT(values_of<std::uint16_t>(tensor.require("zeros").blob), ElementsAre(0));
  EXPECT_THAT(values_of<std::uint32_t>(tensor.require("packed_weight").blob), ElementsAre(0xc80701ff));
  const Tensor negative = quantize_groups(matrix({1, 4}, {-255, -1, -7, -200}), {8, 4});
  EXPECT_THAT(values_of<std::uint32_t>(negative.require("packed_weight").blob), ElementsAre(0x37f8fe00));
  EXPECT_THAT(values_of<float>(make_dense_blob(negative, DType::f32)), ElementsAre(-255, -1, -7, -200));
}

TEST(GroupQuantize, RowsTakeTheLargestHalvedSizeThatFits) {
  EXPECT_EQ(find_group_size({4, 128}, 320), 64U);
  EXPECT_EQ(find_group_size({4, 128}, 4096), 128U);
  EXPECT_EQ(find_group_size({8, 128}, 12), 4U);
  EXPECT_EQ(find_group_size({4, 24}, 24), 24U);
  EXPECT_EQ(find_group_size({4, 128}, 12), std::nullopt);
  EXPECT_THAT(support::message_of([] {
                quantize_groups(matrix({1, 12}, std::vector<float>(12)), {4, 128});
              }),
              HasSubstr("tensor w: rows of 12 elements are not whole groups of 128"));
}

TEST(GroupQuantize, GroupsOfZerosAndOfTinyNumbers) {
  std::vector<float> values(16, 0.0F);
  values[9] = 1e-9F;
  LossyBlobPtr<QuantizationError> codes;
  const Tensor tensor = quantize_groups(matrix({2, 8}, values), {4, 8}, &codes);
  ASSERT_EQ(tensor.require("packed_weight").blob, codes);
  EXPECT_THAT(values_of<float>(make_dense_blob(tensor, DType::f32)), testing::Each(0.0F));
  EXPECT_EQ(lost(*codes).worst, static_cast<double>(1e-9F));
}

// 63 / 255 of 2^-24 would round to a scale of zero and lose the numbers: 2^-24 is the least number of float16.
TEST(GroupQuantize, AScaleThatFloat16CannotHoldIsTheSmallestThatItCan) {
  const float unit = 0x1p-24F;
  const Tensor tensor = quantize_groups(matrix({1, 4}, {63 * unit, unit, 0, 7 * unit}), {8, 4});
  EXPECT_THAT(values_of<std::uint16_t>(tensor.require("scales").blob), ElementsAre(1));
  EXPECT_THAT(values_of<float>(make_dense_blob(tensor, DType::f32)), ElementsAre(63 * unit, unit, 0, 7 * unit));
}

TEST(GroupQuantize, NumbersWithoutAScaleAreRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e7F}) {
    std::vector<float> values(24, 1.0F);
    values[16] = bad;
    const Tensor tensor = quantize_groups(matrix({3, 8}, values), {4, 8});
    EXPECT_THAT(support::message_of([&] { read_all(*tensor.require("packed_weight").blob); }),
                HasSubstr("tensor w: element 16"))
        << bad;
  }
}

TEST(GroupQuantize, EveryRangeOfBytesIsThatOfTheWhole) {
  std::vector<float> values(3 * 4096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37) - 20.5F;
  LossyBlobPtr<QuantizationError> made;
  const Tensor tensor = quantize_groups(matrix({3, 4096}, values), {4, 128}, &made);
  const Blob& codes = *tensor.require("packed_weight").blob;
  const auto whole = read_all(codes);
  EXPECT_EQ(lost(*made).values, values.size());
  std::vector<std::byte> piece(1001);
  codes.read(777, piece);
  EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 777));
}

// Makes a tensor of groups. Tests compare each kind of scheme with the formula, written out.
Tensor grouped(Attributes attributes, Shape shape, std::vector<Part> parts) {
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = std::move(shape);
  tensor.attributes = std::move(attributes);
  tensor.parts = {parts.begin(), parts.end()};
  tensor.layout = read_layout(tensor, "quantized_group");
  if (get_group_scheme(tensor.layout) != nullptr) check_group_parts(tensor);
  return tensor;
}

Part part(std::string role, DType dtype, BlobPtr blob) {
  return {.role = std::move(role), .dtype = dtype, .blob = std::move(blob), .digest = {}};
}

TEST(GroupDecode, HighBitsFirstWithAFixedZero) {
  const Tensor tensor =
      grouped({{"bits", std::uint64_t{4}},
               {"group_size", std::uint64_t{4}},
               {"axis", std::uint64_t{1}},
               {"packing", Attributes{{"word", "u16"}, {"order", "msb_first"}, {"per_word", std::uint64_t{4}}}},
               {"scale_form", "f32_factors"},
               {"zero_point", Attributes{{"form", "implied"}, {"value", std::uint64_t{8}}}}},
              {1, 8},
              {part("packed_weight", DType::u16, blob_of<std::uint16_t>({0x1234, 0x89af})),
               part("scales", DType::f32, blob_of<float>({1.0F, 0.5F}))});
  EXPECT_THAT(values_of<float>(make_dense_blob(tensor, DType::f32)), ElementsAre(-7, -6, -5, -4, 0, 0.5F, 1, 3.5F));
}

TEST(GroupDecode, GroupsAlongTheFirstAxis) {
  const Tensor tensor = grouped({{"bits", std::uint64_t{8}},
                                 {"group_size", std::uint64_t{2}},
                                 {"packing", "1_per_u8"},
                                 {"axis", std::uint64_t{0}}},
                                {4, 2},
                                {part("packed_weight", DType::u8, blob_of<std::uint8_t>({1, 2, 3, 4, 5, 6, 7, 8})),
                                 part("scales", DType::f32, blob_of<float>({1, 10, 100, 1000})),
                                 part("zeros", DType::i8, blob_of<std::int8_t>({0, 1, -1, 2}))});
  // Scales and zeros are [2, 2]: group of rows, column.
  EXPECT_THAT(values_of<float>(make_dense_blob(tensor, DType::f32)), ElementsAre(1, 10, 3, 30, 600, 4000, 800, 6000));
}

// Two of these scales share a byte.
TEST(GroupDecode, ScalesMayTakeLessThanAByte) {
  const Tensor tensor =
      grouped({{"bits", std::uint64_t{8}}, {"group_size", std::uint64_t{2}}, {"packing", "1_per_u8"}}, {1, 6},
              {part("packed_weight", DType::u8, blob_of<std::uint8_t>({1, 2, 3, 4, 5, 6})),
               part("scales", DType::f4_e2m1, blob_of<std::uint8_t>({0x42, 0x01}))});
  EXPECT_THAT(values_of<float>(make_dense_blob(tensor, DType::f32)), ElementsAre(1, 2, 6, 8, 2.5F, 3));
}

}  // namespace
}  // namespace poise
