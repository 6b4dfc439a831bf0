// Layouts of quantized directories: numbers worked out by hand from docs/formats/ztensor.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <poise/error.hpp>

#include "support/errors.hpp"
#include "views/dense.hpp"
#include "views/groups.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
Part part(std::string role, DType dtype, const std::vector<T>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {.role = std::move(role), .dtype = dtype, .blob = make_memory_blob({bytes.begin(), bytes.end()}, "memory")};
}

Tensor made(std::string_view layout, Shape shape, Attributes attributes, std::vector<Part> parts) {
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = std::move(shape);
  tensor.attributes = std::move(attributes);
  for (Part& part : parts) tensor.parts.push_back(std::move(part));
  tensor.layout = read_layout(tensor, layout);
  check_parts(tensor);
  return tensor;
}

std::vector<float> values_of(const Tensor& tensor) {
  EXPECT_TRUE(has_float_elements(tensor));
  const BlobPtr blob = make_dense_blob(tensor, DType::f32);
  std::vector<float> values(blob->size() / sizeof(float));
  blob->read(0, std::as_writable_bytes(std::span(values)));
  std::vector<float> pieces(values.size());  // read in pieces that end within a number
  const auto bytes = std::as_writable_bytes(std::span(pieces));
  for (std::size_t at = 0; at < bytes.size(); at += 7)
    blob->read(at, bytes.subspan(at, std::min<std::size_t>(7, bytes.size() - at)));
  EXPECT_EQ(std::memcmp(values.data(), pieces.data(), bytes.size()), 0);
  return values;
}

std::string refusal(std::string_view layout, Shape shape, Attributes attributes, std::vector<Part> parts) {
  return support::message_of(
      [&] { values_of(made(layout, std::move(shape), std::move(attributes), std::move(parts))); });
}

constexpr std::string_view kScaled = "poise.block_scaled/1";
constexpr std::string_view kCodebook = "poise.codebook/1";
constexpr std::string_view kIndexed = "poise.quant_group_indexed/1";

Value shape_of(std::uint64_t rows, std::uint64_t columns) { return Value::Array{rows, columns}; }

TEST(BlockScaled, LastBlocksMayBeShort) {
  const auto tensor = made(kScaled, {3, 3}, {{"block_shape", shape_of(2, 2)}},
                           {part<float>("data", DType::f32, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
                            part<float>("scales", DType::f32, {1, 10, 2, 100})});
  EXPECT_THAT(values_of(tensor), ElementsAre(1, 2, 30, 4, 5, 60, 14, 16, 900));
  EXPECT_EQ(describe_stored_type(tensor), "f32:2x2");
}

TEST(BlockScaled, HoldsNumbersOfFourBitsAndSeveralMatrices) {
  // 0.5, 1, 1.5, 2, 3, 4, 6, -0.5
  const auto tensor = made(kScaled, {2, 2, 2}, {{"block_shape", shape_of(1, 2)}},
                           {part<std::uint8_t>("data", DType::f4_e2m1, {0x21, 0x43, 0x65, 0x97}),
                            part<float>("scales", DType::f32, {1, 2, 4, -8})});
  EXPECT_THAT(values_of(tensor), ElementsAre(0.5F, 1, 3, 4, 12, 16, -48, 4));
}

TEST(BlockScaled, WhatDoesNotFitIsNamed) {
  const auto data = part<float>("data", DType::f32, {1, 2, 3, 3e38F});
  const auto scales = part<float>("scales", DType::f32, {10});
  EXPECT_THAT(refusal(kScaled, {2, 2}, {}, {data, scales}), HasSubstr("tensor w: attribute block_shape: expected two"));
  EXPECT_THAT(refusal(kScaled, {2, 2}, {{"block_shape", shape_of(0, 2)}}, {data, scales}), HasSubstr("two positive"));
  EXPECT_THAT(refusal(kScaled, {4}, {{"block_shape", shape_of(1, 2)}}, {data, scales}), HasSubstr("needs a matrix"));
  EXPECT_THAT(refusal(kScaled, {2, 2}, {{"block_shape", shape_of(1, 2)}}, {data, scales}),
              HasSubstr("scales: expected 2 elements of f32, found 4 bytes"));
  EXPECT_THAT(refusal(kScaled, {2, 2}, {{"block_shape", shape_of(2, 2)}}, {data}), HasSubstr("needs the part scales"));
  EXPECT_THAT(refusal(kScaled, {2, 2}, {{"block_shape", shape_of(2, 2)}}, {data, scales}),
              HasSubstr("tensor w: element 3 is too large for f32"));
  EXPECT_THAT(refusal(kScaled, {2, 2}, {{"block_shape", shape_of(2, 2)}},
                      {part<std::uint32_t>("data", DType::u32, {1, 2, 3, 4}), scales}),
              HasSubstr("data: expected floating-point numbers"));
}

std::vector<float> book() {
  std::vector<float> numbers(16);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * i);
  return numbers;
}

TEST(Codebook, TheEvenIndexIsInTheLowHalf) {
  const auto tensor = made(kCodebook, {5}, {{"block", 3}},
                           {part<std::uint8_t>("data", DType::u8, {0x21, 0xf3, 0x04}),
                            part<float>("codebook", DType::f32, book()), part<float>("scales", DType::f32, {1, -2})});
  EXPECT_THAT(values_of(tensor), ElementsAre(1, 4, 9, -450, -32));
}

TEST(Codebook, WhatDoesNotFitIsNamed) {
  const auto data = part<std::uint8_t>("data", DType::u8, {0x21});
  const auto scales = part<float>("scales", DType::f32, {1});
  const auto numbers = part<float>("codebook", DType::f32, book());
  EXPECT_THAT(refusal(kCodebook, {2}, {{"block", 0}}, {data, numbers, scales}),
              HasSubstr("attribute block: expected a positive integer"));
  EXPECT_THAT(refusal(kCodebook, {2}, {{"block", 1}}, {data, numbers, scales}),
              HasSubstr("scales: expected 2 elements"));
  EXPECT_THAT(refusal(kCodebook, {3}, {{"block", 4}}, {data, numbers, scales}), HasSubstr("data: expected 2 elements"));
  EXPECT_THAT(refusal(kCodebook, {2}, {{"block", 4}}, {data, part<float>("codebook", DType::f32, {1}), scales}),
              HasSubstr("codebook: expected 16 elements"));
}

Attributes groups_of(std::uint64_t size) {
  return {{"bits", 4},
          {"group_size", size},
          {"axis", 1},
          {"packing", Attributes{{"word", "u8"}, {"order", "lsb_first"}, {"per_word", 2}}},
          {"scale_form", "f32_factors"},
          {"zero_point", Attributes{{"form", "tensor"}, {"packing", "plain"}}}};
}

TEST(IndexedGroups, EachColumnNamesItsGroup) {
  const auto data = part<std::uint8_t>("data", DType::u8, {0x21, 0x43, 0x65, 0x87});
  const auto scales = part<float>("scales", DType::f32, {1, 10, 2, 20});
  const auto zeros = part<std::uint8_t>("zeros", DType::u8, {0, 1, 2, 3});
  const auto tensor = made(kIndexed, {2, 4}, groups_of(2),
                           {data, scales, zeros, part<std::uint32_t>("group_index", DType::u32, {1, 0, 0, 1})});
  EXPECT_THAT(values_of(tensor), ElementsAre(0, 2, 3, 30, 40, 8, 10, 100));
  EXPECT_THAT(refusal(kIndexed, {2, 4}, groups_of(2),
                      {data, scales, zeros, part<std::uint32_t>("group_index", DType::u32, {1, 0, 2, 1})}),
              HasSubstr("group_index: 2 at 2, expected less than 2"));
  EXPECT_THAT(refusal(kIndexed, {2, 4}, groups_of(2),
                      {data, scales, zeros, part<std::uint32_t>("group_index", DType::u32, {1, 0})}),
              HasSubstr("group_index: expected 4 elements"));
  EXPECT_THAT(refusal(kIndexed, {2, 4}, groups_of(2), {data, scales, zeros}), HasSubstr("needs the part group_index"));
  EXPECT_THAT(refusal(kIndexed, {2, 4}, groups_of(3), {data, scales, zeros}), HasSubstr("3 does not divide the 4"));
}

// A scale that float32 cannot hold is finite, so that its products are not infinite numbers of the file.
TEST(IndexedGroups, AScaleBeyondFloat32IsRefused) {
  const auto data = part<std::uint8_t>("data", DType::u8, {0x21, 0x43});
  const auto zeros = part<std::uint8_t>("zeros", DType::u8, {0, 0});
  const auto index = part<std::uint32_t>("group_index", DType::u32, {0, 0, 1, 1});
  EXPECT_THAT(
      refusal(kIndexed, {1, 4}, groups_of(2), {data, part<double>("scales", DType::f64, {1, 1e300}), zeros, index}),
      HasSubstr("tensor w: element 2 is too large for f32"));
}

TEST(IndexedGroups, SortedColumnsAreInGroupsOfNeighbours) {
  const auto data = part<std::uint8_t>("data", DType::u8, {0x21, 0x43, 0x65, 0x87});
  const auto scales = part<float>("scales", DType::f32, {1, 10, 2, 20});
  const auto zeros = part<std::uint8_t>("zeros", DType::u8, {0, 1, 2, 3});
  const auto sorted_by = [&](const std::vector<std::uint32_t>& index) {
    return *sort_groups(made(kIndexed, {2, 4}, groups_of(2),
                             {data, scales, zeros, part<std::uint32_t>("group_index", DType::u32, index)}));
  };
  const SortedGroups halves = sorted_by({1, 0, 0, 1});
  EXPECT_THAT(halves.order, ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(values_of(halves.groups), ElementsAre(2, 3, 0, 30, 8, 10, 40, 100));
  const SortedGroups in_order = sorted_by({0, 0, 1, 1});
  EXPECT_THAT(in_order.order, ElementsAre());
  EXPECT_THAT(values_of(in_order.groups), ElementsAre(1, 2, 20, 30, 6, 8, 80, 100));
  // Groups of different sizes become several groups of a common size.
  const SortedGroups three_and_one = sorted_by({0, 1, 0, 0});
  EXPECT_THAT(three_and_one.order, ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(values_of(three_and_one.groups), ElementsAre(1, 3, 4, 10, 6, 10, 12, 60));
  const SortedGroups one = sorted_by({1, 1, 1, 1});
  EXPECT_THAT(values_of(one.groups), ElementsAre(0, 10, 20, 30, 40, 60, 80, 100));
}

TEST(IndexedGroups, OfColumnsAreNotSorted) {
  Attributes columns = groups_of(2);
  columns.set("axis", 0);
  const auto tensor =
      made(kIndexed, {2, 2}, columns,
           {part<std::uint8_t>("data", DType::u8, {0x21, 0x43}), part<float>("scales", DType::f32, {1, 10}),
            part<std::uint8_t>("zeros", DType::u8, {0, 1}), part<std::uint32_t>("group_index", DType::u32, {0, 0})});
  EXPECT_FALSE(sort_groups(tensor).has_value());
}

// Returns a tensor with the codes 1, 2, 3, 4 in one group.
Tensor group_of(float scale, float zero) {
  return made(kIndexed, {1, 4}, groups_of(4),
              {part<std::uint8_t>("data", DType::u8, {0x21, 0x43}), part<float>("scales", DType::f32, {scale}),
               part<float>("zeros", DType::f32, {zero}), part<std::uint32_t>("group_index", DType::u32, {0, 0, 0, 0})});
}

// An infinity in the file is read as one. A product that overflows is refused: float32 reaches 3.4028e38.
TEST(FiniteNumbers, OnlyStatedInfinitiesAreRead) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(values_of(group_of(1e38F, 1)), ElementsAre(0, 1e38F, 2e38F, 3e38F));
  EXPECT_NO_THROW(require_finite_numbers(group_of(1e38F, 1)));
  const Tensor large = group_of(1e38F, 0);
  for (const auto& read : {std::function([&] { values_of(large); }), {[&] { require_finite_numbers(large); }}})
    EXPECT_EQ(support::message_of(read), "tensor w: element 3 is too large for f32");
  EXPECT_EQ(support::message_of([] { values_of(group_of(2, 3e38F)); }), "tensor w: element 0 is too large for f32");
  EXPECT_THAT(values_of(group_of(kInfinity, 0)), Each(kInfinity));
  EXPECT_NO_THROW(require_finite_numbers(group_of(kInfinity, 0)));
  // A NaN does not hide a number that overflows.
  std::vector<float> numbers = book();
  numbers[1] = std::numeric_limits<float>::quiet_NaN();
  const auto codebook = [&] {
    return made(kCodebook, {2}, {{"block", 2}},
                {part<std::uint8_t>("data", DType::u8, {0x21}), part<float>("codebook", DType::f32, numbers),
                 part<float>("scales", DType::f32, {1e38F})});
  };
  EXPECT_EQ(support::message_of([&] { values_of(codebook()); }), "tensor w: element 1 is too large for f32");
  numbers[2] = 3;
  EXPECT_THAT(values_of(codebook()), ElementsAre(testing::IsNan(), 3e38F));
}

}  // namespace
}  // namespace poise
