// Numbers in and out of tensors. The expected ones are written by hand.
#include <poise/values.hpp>

#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/stored_type.hpp>

#include "support/errors.hpp"
#include "views/affine.hpp"

namespace poise {
namespace {

using testing::ElementsAre;

Tensor bf16_tensor() {
  return make_dense(
      "b", {3}, DType::bf16,
      make_memory_blob(
          {std::byte{0x80}, std::byte{0x3f}, std::byte{0x00}, std::byte{0xc0}, std::byte{0x00}, std::byte{0x00}}, "b"));
}

TEST(Values, AreDecoded) {
  EXPECT_THAT(values(bf16_tensor()), ElementsAre(1.0F, -2.0F, 0.0F));
  const Tensor tensor = make_tensor("w", {2, 2}, {127, -127, 0, 1});
  EXPECT_EQ(tensor.parts[0].dtype, DType::f32);
  EXPECT_THAT(values(tensor), ElementsAre(127, -127, 0, 1));
  EXPECT_THAT(values(quantize(tensor, *stored_type_from_name("qint8"))), ElementsAre(127, -127, 0, 1));  // delta is 1
  EXPECT_THAT(values(make_tensor("e", {0, 3}, {})), testing::IsEmpty());
}

TEST(Values, AreReadInPieces) {
  std::array<float, 2> two{};
  read_values(bf16_tensor(), 1, two);
  EXPECT_THAT(two, ElementsAre(-2.0F, 0.0F));
  read_values(bf16_tensor(), 3, {});
  EXPECT_EQ(support::error_of([&] { read_values(bf16_tensor(), 2, two); }).kind(), ErrorKind::bad_argument);
  EXPECT_EQ(support::error_of([&] { read_values(bf16_tensor(), UINT64_MAX, two); }).kind(), ErrorKind::bad_argument);
}

// A block of q8_0 is a float16 scale, 1/127 of the largest magnitude, and 32 codes.
TEST(Values, BecomeCodesInMemory) {
  std::vector<float> numbers(64);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  numbers[0] = -127;
  numbers[32] = 127;
  const Tensor codes = quantized(make_tensor("w", {2, 32}, numbers), *stored_type_from_name("q8_0"));
  const auto bytes = codes.require("data").blob->map();
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), 68U);
  EXPECT_EQ((*bytes)[1], std::byte{0x3c});  // 1.0
  EXPECT_EQ((*bytes)[2], std::byte{0x81});
  EXPECT_EQ((*bytes)[36], std::byte{127});
  EXPECT_EQ((*bytes)[37], std::byte{33});
  EXPECT_EQ(values(codes), numbers);
  const Tensor reread = make_block_tensor("w", {2, 32}, "q8_0", {bytes->begin(), bytes->end()});
  EXPECT_EQ(values(reread), numbers);
  for (const char* type : {"qint8", "qint4:range", "group8:32", "group4", "q4_0", "mxfp4"}) {
    const Tensor tensor = make_tensor("w", {2, 32}, numbers);
    const Tensor made = quantized(tensor, *stored_type_from_name(type));
    for (const Part& part : made.parts) EXPECT_TRUE(part.blob->map()) << type;
    EXPECT_EQ(values(made), values(quantize(tensor, *stored_type_from_name(type)))) << type;
  }
}

TEST(Values, MayBeNone) {
  for (const char* type : {"q8_0", "qint8", "group4"}) {
    EXPECT_TRUE(values(quantized(make_tensor("e", {0, 32}, {}), *stored_type_from_name(type))).empty()) << type;
  }
  EXPECT_TRUE(values(quantized(make_tensor("e", {3, 0}, {}), *stored_type_from_name("q8_0"))).empty());
}

TEST(Values, QuantizingReportsBytesOfCodesAndCanBeCancelled) {
  const Tensor numbers = make_tensor("w", {512, 1024}, std::vector<float>(512 * 1024, 1.0F));
  const StoredType type = *stored_type_from_name("q8_0");
  std::uint64_t last = 0;
  (void)quantized(numbers, type, [&](const ProgressEvent& event) {
    EXPECT_EQ(event.total, 512U * 1024 / 32 * 34);
    EXPECT_GT(event.done, last);
    last = event.done;
    return true;
  });
  EXPECT_EQ(last, 512U * 1024 / 32 * 34);
  const auto stop = [](const ProgressEvent&) { return false; };
  EXPECT_EQ(support::error_of([&] { (void)quantized(numbers, type, stop); }).kind(), ErrorKind::cancelled);
}

TEST(Values, AreNotQuantizedToTypesThatDoNotFit) {
  const Tensor tensor = make_tensor("w", {2, 32}, std::vector<float>(64, 1));
  const auto refusal = [](const Tensor& other, const char* type) {
    return support::error_of([&] { quantized(other, *stored_type_from_name(type)); });
  };
  EXPECT_EQ(refusal(tensor, "f16").kind(), ErrorKind::bad_argument);
  EXPECT_EQ(refusal(tensor, "q4_k").message(),
            "tensor w: its rows of 32 elements are not whole blocks of 256, which q4_k has");
  EXPECT_EQ(refusal(make_tensor("s", {}, {1}), "q8_0").kind(), ErrorKind::unsupported);
  EXPECT_EQ(refusal(make_tensor("s", {}, {1}), "group4").kind(), ErrorKind::unsupported);
  EXPECT_EQ(refusal(make_tensor("w", {3}, {1, 2, 3}), "group4").kind(), ErrorKind::unsupported);
  EXPECT_EQ(refusal(make_tensor("n", {32}, std::vector<float>(32, NAN)), "q8_0").kind(), ErrorKind::unsupported);
  const auto blocks_refusal = [](const char* type, std::size_t bytes) {
    return support::error_of([&] { make_block_tensor("b", {2, 32}, type, std::vector<std::byte>(bytes)); }).message();
  };
  EXPECT_EQ(blocks_refusal("q8_0", 67), "tensor b: 67 bytes are the wrong size for q8_0 [2, 32]");
  EXPECT_EQ(blocks_refusal("f16", 128), "tensor b: \"f16\" is not a type of blocks");
  EXPECT_EQ(blocks_refusal("q4_k", 288),
            "tensor b: its rows of 32 elements are not whole blocks of 256, which q4_k has");
}

TEST(Values, AreOfFloatingPointTensors) {
  const Tensor integers = make_dense("i", {2}, DType::i8, make_memory_blob({std::byte{1}, std::byte{2}}, "i"));
  EXPECT_EQ(support::error_of([&] { values(integers); }).kind(), ErrorKind::unsupported);
  EXPECT_EQ(support::error_of([&] { make_tensor("w", {2, 2}, {1, 2, 3}); }).kind(), ErrorKind::bad_argument);
}

}  // namespace
}  // namespace poise
