// Every code of every small type, compared with its decoded value; and every place in a run.
#include "numeric/scan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include "bytes/little_endian.hpp"
#include "numeric/float_formats.hpp"

namespace poise {
namespace {

TEST(Scan, ByteFloatsAreBadWhenTheyDecodeToNoFiniteNumber) {
  for (const DType dtype : {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz, DType::f8_e8m0}) {
    for (std::uint32_t code = 0; code < 256; ++code) {
      const std::byte byte{static_cast<unsigned char>(code)};
      EXPECT_EQ(find_bad_values(dtype, {&byte, 1}).count, std::isfinite(decode_float(dtype, code)) ? 0U : 1U)
          << to_string(dtype) << " " << code;
    }
  }
}

TEST(Scan, HalvesAreBadWhenTheyDecodeToNoFiniteNumber) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (std::uint32_t code = 0; code < 65536; ++code) {
      std::byte bytes[2];
      store_le(bytes, static_cast<std::uint16_t>(code));
      ASSERT_EQ(find_bad_values(dtype, bytes).count, std::isfinite(decode_float(dtype, code)) ? 0U : 1U)
          << to_string(dtype) << " " << code;
    }
  }
}

TEST(Scan, FindsTheFirstAtEveryPlace) {
  constexpr std::size_t kElements = 300;  // two blocks of the counting loop, and some more
  for (const auto& [dtype, bytes, bad] : {std::tuple{DType::boolean, 1U, 0x02ULL},
                                          {DType::f16, 2U, 0x7c00ULL},
                                          {DType::f32, 4U, 0xff800001ULL},
                                          {DType::f64, 8U, 0x7ff0000000000000ULL}}) {
    for (std::size_t first = 0; first < kElements; ++first) {
      std::vector<std::byte> data(kElements * bytes);
      for (std::size_t i : {first, kElements - 1}) std::memcpy(data.data() + i * bytes, &bad, bytes);
      const BadValues found = find_bad_values(dtype, data);
      ASSERT_EQ(found.first, first) << to_string(dtype);
      ASSERT_EQ(found.count, first == kElements - 1 ? 1U : 2U) << to_string(dtype);
    }
  }
}

TEST(Scan, CountsARunOfOnlyBadValues) {
  const std::vector<std::byte> bytes(100'000, std::byte{0xff});
  EXPECT_EQ(find_bad_values(DType::boolean, bytes).count, 100'000U);
  EXPECT_EQ(find_bad_values(DType::bf16, bytes).count, 50'000U);
  EXPECT_EQ(find_bad_values(DType::complex64, bytes).count, 12'500U);
  EXPECT_EQ(find_bad_values(DType::complex128, std::span(bytes).first(99'984)).count, 6249U);
}

}  // namespace
}  // namespace poise
