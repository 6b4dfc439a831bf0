// Numbers in and out of tensors. The expected ones are written by hand.
#include <poise/values.hpp>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/stored_type.hpp>

#include "support/errors.hpp"
#include "views/quantize.hpp"

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

TEST(Values, RefuseWhatIsNoFloatingPointNumber) {
  const Tensor integers = make_dense("i", {2}, DType::i8, make_memory_blob({std::byte{1}, std::byte{2}}, "i"));
  EXPECT_EQ(support::error_of([&] { values(integers); }).kind(), ErrorKind::unsupported);
  EXPECT_EQ(support::error_of([&] { make_tensor("w", {2, 2}, {1, 2, 3}); }).kind(), ErrorKind::bad_argument);
}

}  // namespace
}  // namespace poise
