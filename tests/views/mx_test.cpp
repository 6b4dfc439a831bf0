// Numbers of the Microscaling Formats, worked out by hand from the tables of their specification (Open Compute Project,
// version 1.0).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <poise/error.hpp>

#include "support/errors.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Part part(std::string role, DType dtype, const std::vector<std::uint8_t>& bytes) {
  const auto as_bytes = std::as_bytes(std::span(bytes));
  return {.role = std::move(role),
          .dtype = dtype,

          .blob = make_memory_blob({as_bytes.begin(), as_bytes.end()}, "memory"),
          .digest = {}};
}

Tensor mx(Shape shape, DType dtype, const std::vector<std::uint8_t>& data, const std::vector<std::uint8_t>& scales,
          Attributes attributes) {
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = std::move(shape);
  tensor.attributes = std::move(attributes);
  tensor.parts = {part("data", dtype, data), part("scales", DType::f8_e8m0, scales)};
  tensor.layout = read_layout(tensor, "zt.mx/1");
  return tensor;
}

std::vector<float> values_of(const Tensor& tensor) {
  EXPECT_TRUE(has_float_elements(tensor));
  const BlobPtr blob = make_dense_blob(tensor, DType::f32);
  std::vector<float> values(blob->size() / sizeof(float));
  blob->read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

std::string failure_of(const Tensor& tensor) {
  return support::message_of([&] { values_of(tensor); });
}

TEST(Mx, ElementsOfEveryTypeAreMultipliedByThePowerOfTheirBlock) {
  EXPECT_THAT(values_of(mx({8}, DType::f4_e2m1, {0x21, 0x43, 0x75, 0xf8}, {127, 129}, {{"block_size", 4}})),
              ElementsAre(0.5F, 1, 1.5F, 2, 12, 24, -0.0F, -24));
  // 1, 448, -2^-9, 1.125
  EXPECT_THAT(
      values_of(mx({4}, DType::f8_e4m3, {0x38, 0x7e, 0x81, 0x39}, {126, 128}, {{"block_size", 2}, {"axis", 0}})),
      ElementsAre(0.5F, 224, -0x1p-8F, 2.25F));
  // 1, 57344, -2^-16, 1.25
  EXPECT_THAT(values_of(mx({4}, DType::f8_e5m2, {0x3c, 0x7b, 0x81, 0x3d}, {127, 128}, {{"block_size", 2}})),
              ElementsAre(1, 57344, -0x1p-15F, 2.5F));
}

// A code of one byte counts 64ths: the format's numbers reach from -2 to 1 63/64.
TEST(Mx, IntegersCount64ths) {
  EXPECT_THAT(values_of(mx({4}, DType::i8, {64, 1, 0x80, 0x7f}, {127, 130},
                           {{"block_size", 2}, {"scale_form", "e8m0_exponent"}})),
              ElementsAre(1, 0x1p-6F, -16, 127.0F / 8));
}

TEST(Mx, BlocksRunAlongTheAxis) {
  // 4 rows of 3, blocks of two rows: scales [2, 3].
  const std::vector<std::uint8_t> ones(6, 0x22);
  EXPECT_THAT(
      values_of(mx({4, 3}, DType::f4_e2m1, ones, {127, 128, 129, 130, 131, 132}, {{"block_size", 2}, {"axis", 0}})),
      ElementsAre(1, 2, 4, 1, 2, 4, 8, 16, 32, 8, 16, 32));
}

TEST(Mx, ExtremeScales) {
  EXPECT_THAT(values_of(mx({2}, DType::f8_e5m2, {0x01, 0x3c}, {0}, {{"block_size", 2}})),
              ElementsAre(0x1p-143F, 0x1p-127F));
  EXPECT_THAT(values_of(mx({2}, DType::f4_e2m1, {0x20}, {255}, {{"block_size", 2}})),
              testing::Each(testing::Truly([](float x) { return std::isnan(x); })));
  EXPECT_THAT(values_of(mx({2}, DType::f4_e2m1, {0x20}, {254}, {{"block_size", 2}})), ElementsAre(0, 0x1p127F));
  EXPECT_THAT(failure_of(mx({2}, DType::f4_e2m1, {0x40}, {254}, {{"block_size", 2}})),
              HasSubstr("tensor w: element 1 is too large for f32"));
  EXPECT_THAT(values_of(mx({2}, DType::f8_e5m2, {0x7c, 0xfc}, {127}, {{"block_size", 2}})),
              ElementsAre(INFINITY, -INFINITY));
}

TEST(Mx, EveryRangeOfBytesIsThatOfTheWhole) {
  std::vector<std::uint8_t> codes(5000);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 37);
  std::vector<std::uint8_t> scales(5000);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(100 + i % 50);
  const BlobPtr blob = make_dense_blob(mx({10'000}, DType::f4_e2m1, codes, scales, {{"block_size", 2}}), DType::f32);
  const std::vector<std::byte> whole = read_all(*blob);
  for (const std::size_t offset : {1U, 2U, 4U, 12U, 16380U, 16388U, 20001U}) {
    for (const std::size_t size : {1U, 4U, 7U, 17000U}) {
      std::vector<std::byte> part(size);
      blob->read(offset, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)))
          << offset << " " << size;
    }
  }
}

TEST(Mx, WhatDoesNotFitIsNamed) {
  const std::vector<std::uint8_t> data(4);
  EXPECT_THAT(support::message_of([&] {
                mx({8}, DType::f4_e2m1, data, {127, 127}, {});
              }),
              HasSubstr("tensor w: zt.mx/1: attribute block_size: expected an unsigned integer"));
  EXPECT_THAT(support::message_of([&] {
                mx({8}, DType::f4_e2m1, data, {127}, {{"block_size", 3}});
              }),
              HasSubstr("block_size: 3 does not divide the 8 elements along axis 0"));
  EXPECT_THAT(failure_of(mx({8}, DType::f4_e2m1, data, {127}, {{"block_size", 4}})),
              HasSubstr("scales: expected 2 bytes, found 1"));
  EXPECT_THAT(support::message_of([&] {
                mx({8}, DType::f4_e2m1, data, {127}, {{"block_size", 8}, {"scale_form", "f32_factors"}});
              }),
              HasSubstr("scale_form"));
  EXPECT_THAT(failure_of(mx({4}, DType::u8, data, {127}, {{"block_size", 4}})),
              HasSubstr("data: u8 is not an MX element"));
}

}  // namespace
}  // namespace poise
