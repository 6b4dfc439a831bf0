// Encoding is the inverse of decoding, and rounds according to IEEE 754: to the nearer neighbour, and from the middle
// to the even one. Decoding is compared with numbers calculated by hand.
#include "numeric/float_formats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace poise {
namespace {

struct Format {
  DType dtype;
  std::uint16_t (*encode)(double);
  std::uint16_t infinity;
};
constexpr Format kFormats[] = {{DType::f16, encode_f16, 0x7c00}, {DType::bf16, encode_bf16, 0x7f80}};

TEST(FloatFormats, KnownNumbers) {
  EXPECT_EQ(decode_f16(0x3c00), 1.0F);
  EXPECT_EQ(decode_f16(0xc000), -2.0F);
  EXPECT_EQ(decode_f16(0x7bff), 65504.0F);
  EXPECT_EQ(decode_f16(0x0400), std::ldexp(1.0F, -14));
  EXPECT_EQ(decode_f16(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(decode_f16(0x3555), 1365.0F / 4096.0F);
  EXPECT_EQ(encode_f16(65519.99), 0x7bff);
  EXPECT_EQ(encode_f16(65520), 0x7c00);
  EXPECT_EQ(encode_f16(1e300), 0x7c00);
  EXPECT_EQ(encode_f16(-1e-300), 0x8000);
  EXPECT_EQ(encode_f16(1.0 / 3), 0x3555);
  EXPECT_EQ(encode_bf16(1.0 / 3), 0x3eab);
  EXPECT_EQ(encode_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(encode_f16(std::numeric_limits<double>::denorm_min()), 0);
}

TEST(FloatFormats, SmallestNormalNumbersAreThoseOfTheType) {
  EXPECT_EQ(find_smallest_normal(DType::f16), 0x1p-14);
  EXPECT_EQ(find_smallest_normal(DType::bf16), 0x1p-126);
  EXPECT_EQ(find_smallest_normal(DType::f32), 0x1p-126);
  EXPECT_EQ(find_smallest_normal(DType::f8_e4m3), 0x1p-6);
  EXPECT_EQ(find_smallest_normal(DType::f8_e5m2), 0x1p-14);
  EXPECT_EQ(find_smallest_normal(DType::f4_e2m1), 1);
  EXPECT_EQ(find_smallest_normal(DType::i8), 0);
}

TEST(FloatFormats, QuickDecodingIsDecoding) {
  for (std::uint32_t code = 0; code <= 0xffff; ++code) {
    const float quick = decode_f16(static_cast<std::uint16_t>(code));
    const float slow = decode_float(DType::f16, code);
    ASSERT_EQ(std::memcmp(&quick, &slow, sizeof quick), 0) << code;
  }
}

TEST(FloatFormats, NeighboursAndTheMiddleBetweenThem) {
  for (const Format& format : kFormats) {
    for (std::uint16_t code = 0; code < format.infinity; ++code) {
      const auto here = static_cast<double>(decode_float(format.dtype, code));
      // After the largest number, the next one would be twice a power of two.
      const double above = code + 1 == format.infinity ? 2 * std::exp2(std::ilogb(here))
                                                       : static_cast<double>(decode_float(format.dtype, code + 1U));
      const double middle = (here + above) / 2;
      const auto even = static_cast<std::uint16_t>(code + code % 2);
      ASSERT_EQ(format.encode(here), code);
      ASSERT_EQ(format.encode(middle), even) << code;
      ASSERT_EQ(format.encode(std::nextafter(middle, 0)), code) << code;
      ASSERT_EQ(format.encode(std::nextafter(middle, 1e300)), code + 1) << code;
      ASSERT_EQ(format.encode(-here), code | 0x8000);
      ASSERT_EQ(format.encode(-middle), even | 0x8000) << code;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(format.encode(infinity), format.infinity);
    EXPECT_EQ(format.encode(-infinity), format.infinity | 0x8000);
    EXPECT_GT(format.encode(std::numeric_limits<double>::quiet_NaN()) & 0x7fff, format.infinity);
  }
}

}  // namespace
}  // namespace poise
