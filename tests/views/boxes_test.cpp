#include "views/boxes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <poise/error.hpp>

namespace poise {
namespace {

std::vector<std::byte> read_bytes(const Blob& blob) {
  std::vector<std::byte> bytes(blob.size());
  blob.read(0, bytes);
  return bytes;
}

// Returns a box with the elements that a tensor of bytes 0, 1, 2, ... has there.
Box cut_box(const Shape& shape, Shape offsets, Shape sizes) {
  std::vector<std::byte> bytes;
  Shape at(shape.size(), 0);
  std::uint64_t count = 1;
  for (const std::uint64_t size : sizes) count *= size;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t rest = i;
    std::uint64_t place = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += (offsets[d] + rest % sizes[d]) * stride;
      rest /= sizes[d];
      stride *= shape[d];
    }
    bytes.push_back(static_cast<std::byte>(place));
  }
  return {std::move(offsets), std::move(sizes), make_memory_blob(std::move(bytes), "box")};
}

std::string find_problem(const Shape& shape, std::vector<Box> boxes) {
  try {
    (void)make_box_blob(shape, std::move(boxes), 1);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Boxes, AssembleRowsColumnsAndBlocks) {
  const Shape shape = {4, 6, 3};
  const std::vector<std::vector<Box>> cuts = {
      {cut_box(shape, {0, 0, 0}, {1, 6, 3}), cut_box(shape, {1, 0, 0}, {3, 6, 3})},
      {cut_box(shape, {0, 4, 0}, {4, 2, 3}), cut_box(shape, {0, 0, 0}, {4, 4, 3})},
      {cut_box(shape, {0, 0, 0}, {4, 6, 2}), cut_box(shape, {0, 0, 2}, {4, 6, 1})},
      {cut_box(shape, {0, 0, 0}, {2, 3, 3}), cut_box(shape, {0, 3, 0}, {2, 3, 3}), cut_box(shape, {2, 0, 0}, {2, 6, 3}),
       cut_box(shape, {4, 0, 0}, {0, 6, 3})}};
  for (const std::vector<Box>& boxes : cuts) {
    const BlobPtr blob = make_box_blob(shape, boxes, 1);
    std::vector<std::byte> expected(72);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::byte>(i);
    EXPECT_EQ(read_bytes(*blob), expected);
    for (std::size_t from = 0; from < 72; from += 5) {
      std::vector<std::byte> some(72 - from < 7 ? 72 - from : 7);
      blob->read(from, some);
      EXPECT_EQ(some.front(), static_cast<std::byte>(from));
      EXPECT_EQ(some.back(), static_cast<std::byte>(from + some.size() - 1));
    }
  }
}

TEST(Boxes, ReadPartsOfElements) {
  const BlobPtr low = make_memory_blob({std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}, "low");
  const BlobPtr high = make_memory_blob({std::byte{5}, std::byte{6}}, "high");
  const BlobPtr blob = make_box_blob({3}, {{{2}, {1}, high}, {{0}, {2}, low}}, 2);
  std::vector<std::byte> some(3);
  blob->read(3, some);
  EXPECT_THAT(some, testing::ElementsAre(std::byte{4}, std::byte{5}, std::byte{6}));
}

TEST(Boxes, KeepASingleWholeBox) {
  const Box whole = cut_box({2, 2}, {0, 0}, {2, 2});
  EXPECT_EQ(make_box_blob({2, 2}, {whole}, 1), whole.elements);
  const Box scalar = {{}, {}, make_memory_blob({std::byte{9}}, "scalar")};
  EXPECT_EQ(make_box_blob({}, {scalar}, 1), scalar.elements);
  EXPECT_EQ(make_box_blob({0, 5}, {}, 4)->size(), 0U);
}

TEST(Boxes, RefuseBoxesThatMakeNoTensor) {
  const Shape shape = {4, 2};
  const Box top = cut_box(shape, {0, 0}, {2, 2});
  const Box bottom = cut_box(shape, {2, 0}, {2, 2});
  EXPECT_THAT(find_problem(shape, {top}), testing::HasSubstr("cover 0 to 2 of dimension 0, expected 0 to 4"));
  EXPECT_THAT(find_problem(shape, {top, top, bottom}), testing::HasSubstr("overlap"));
  EXPECT_THAT(find_problem(shape, {top, cut_box(shape, {2, 0}, {2, 1})}),
              testing::HasSubstr("do not cover all elements"));
  EXPECT_THAT(find_problem(shape, {}), testing::HasSubstr("no parts"));
  EXPECT_THAT(find_problem(shape, {{{3, 0}, {2, 2}, top.elements}}), testing::HasSubstr("2 elements from 3 on"));
  EXPECT_THAT(find_problem(shape, {{{UINT64_MAX, 0}, {2, 2}, top.elements}}), testing::HasSubstr("dimension 0"));
  EXPECT_THAT(find_problem(shape, {{{0}, {4}, top.elements}}), testing::HasSubstr("1 dimensions, expected 2"));
  EXPECT_THAT(find_problem(shape, {{{0, 0}, {1, 2}, top.elements}}), testing::HasSubstr("4 bytes, expected 2"));
  // 200 boxes on a diagonal have 40,000 cells.
  std::vector<Box> diagonal;
  for (std::uint64_t i = 0; i < 200; ++i) diagonal.push_back({{i, i}, {1, 1}, make_memory_blob({std::byte{1}}, "")});
  EXPECT_THAT(find_problem({200, 200}, diagonal), testing::HasSubstr("do not form a grid"));
}

}  // namespace
}  // namespace poise
