// The bits of IEEE 754 and bfloat16 are worked out by hand.
#include "syntax/element_value.hpp"

#include <gtest/gtest.h>

#include "support/bytes.hpp"

namespace poise {
namespace {

std::optional<Value> value_of(DType dtype, std::uint64_t bits, std::size_t bytes) {
  const std::string text = support::le(bits, bytes);
  return read_element(dtype, std::as_bytes(std::span(text)));
}

TEST(ElementValue, ReadsEachKind) {
  EXPECT_EQ(value_of(DType::f64, 0x3ff8000000000000, 8), Value(1.5));
  EXPECT_EQ(value_of(DType::f32, 0xbfc00000, 4), Value(-1.5));
  EXPECT_EQ(value_of(DType::f16, 0x3e00, 2), Value(1.5));
  EXPECT_EQ(value_of(DType::bf16, 0x3fc0, 2), Value(1.5));
  EXPECT_EQ(value_of(DType::f8_e5m2, 0x3e, 1), Value(1.5));
  EXPECT_EQ(value_of(DType::i64, UINT64_MAX, 8), Value(-1));
  EXPECT_EQ(value_of(DType::i32, 0x80000000, 4), Value(std::int64_t{INT32_MIN}));
  EXPECT_EQ(value_of(DType::i16, 0xffff, 2), Value(-1));
  EXPECT_EQ(value_of(DType::i8, 0x80, 1), Value(-128));
  EXPECT_EQ(value_of(DType::u64, UINT64_MAX, 8), Value(std::uint64_t{UINT64_MAX}));
  EXPECT_EQ(value_of(DType::u8, 0x80, 1), Value(128));
  EXPECT_EQ(value_of(DType::boolean, 1, 1), Value(true));
  EXPECT_EQ(value_of(DType::complex64, 0xbfc000003fc00000, 8), Value(Value::Array{1.5, -1.5}));
}

TEST(ElementValue, RefusesBytesThatAreNotOneElement) {
  EXPECT_EQ(value_of(DType::f32, 0, 2), std::nullopt);
  EXPECT_EQ(value_of(DType::f4_e2m1, 0, 1), std::nullopt);
  EXPECT_EQ(value_of(DType::unknown, 0, 1), std::nullopt);
}

}  // namespace
}  // namespace poise
