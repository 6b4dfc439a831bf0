#include "numeric/float_formats.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <poise/error.hpp>

namespace poise {
namespace {

using Specials = FloatFormat::Specials;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Decodes a NaN of an IEEE format. It keeps its sign and payload and becomes quiet, as when a processor converts it.
float decode_nan(bool negative, std::uint32_t mantissa, FloatFormat format) {
  return std::bit_cast<float>((negative ? 0x80000000U : 0U) | 0x7fc00000U | mantissa << (23 - format.mantissa_bits));
}

float decode_e8m0(std::uint32_t code) { return code == 0xff ? kNan : std::ldexp(1.0F, static_cast<int>(code) - 127); }

// Rounds the double once, ties to even, to a 16-bit format with infinities and NaN as in IEEE 754.
std::uint16_t encode_16_bits(double value, FloatFormat format) {
  constexpr int kMantissaBits = 52;
  constexpr int kBias = 1023;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffff;
  const std::uint16_t infinity = static_cast<std::uint16_t>(((1U << format.exponent_bits) - 1) << format.mantissa_bits);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1U << (format.mantissa_bits - 1));
  const int exponent = static_cast<int>(magnitude >> kMantissaBits) - kBias + format.bias;  // biased as in the format
  if (exponent >= (1 << format.exponent_bits) - 1) return static_cast<std::uint16_t>(sign | infinity);
  // Below the smallest normal number the mantissa loses bits; far below, it loses all of them.
  const int dropped = kMantissaBits - static_cast<int>(format.mantissa_bits) + (exponent < 1 ? 1 - exponent : 0);
  if (dropped > kMantissaBits + 1) return sign;
  const std::uint64_t significand = (magnitude & ((std::uint64_t{1} << kMantissaBits) - 1)) | std::uint64_t{1}
                                                                                                  << kMantissaBits;
  const std::uint64_t kept = significand >> dropped;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << dropped) - 1);
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rounded = kept + (rest > half || (rest == half && kept % 2 != 0) ? 1 : 0);
  // `rounded` includes the leading 1 of a normal number. Adding it to the exponent field increases the exponent by 1,
  // and a carry from rounding increases it once more, up to infinity.
  const std::uint64_t code =
      rounded + (exponent > 1 ? static_cast<std::uint64_t>(exponent - 1) << format.mantissa_bits : 0);
  return static_cast<std::uint16_t>(sign | code);
}

}  // namespace

FloatFormat get_float_format(DType dtype) {
  switch (dtype) {
    case DType::f16: return {5, 10, 15, Specials::ieee};
    case DType::bf16: return {8, 7, 127, Specials::ieee};
    case DType::f8_e4m3: return {4, 3, 7, Specials::nan_only};
    case DType::f8_e5m2: return {5, 2, 15, Specials::ieee};
    case DType::f8_e4m3fnuz: return {4, 3, 8, Specials::fnuz};
    case DType::f8_e5m2fnuz: return {5, 2, 16, Specials::fnuz};
    case DType::f4_e2m1: return {2, 1, 1, Specials::none};
    default: throw Error(ErrorKind::internal, "the element type is not a small floating-point format");
  }
}

float decode_float(DType dtype, std::uint32_t code) {
  if (dtype == DType::f8_e8m0) return decode_e8m0(code);
  if (dtype == DType::bf16)
    return std::bit_cast<float>(code << 16);  // bfloat16 is the upper half of a float32, also for NaN
  const FloatFormat format = get_float_format(dtype);
  const std::uint32_t mantissa = code & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t exponent = code >> format.mantissa_bits & ((1U << format.exponent_bits) - 1);
  const bool negative = (code >> (format.mantissa_bits + format.exponent_bits) & 1U) != 0;
  const std::uint32_t largest_exponent = (1U << format.exponent_bits) - 1;
  const std::uint32_t largest_mantissa = (1U << format.mantissa_bits) - 1;
  const float sign = negative ? -1.0F : 1.0F;
  if (format.specials == Specials::fnuz && negative && exponent == 0 && mantissa == 0) return kNan;
  if (format.specials == Specials::nan_only && exponent == largest_exponent && mantissa == largest_mantissa)
    return kNan;
  if (format.specials == Specials::ieee && exponent == largest_exponent)
    return mantissa == 0 ? sign * kInfinity : decode_nan(negative, mantissa, format);
  const std::uint32_t significand = exponent == 0 ? mantissa : mantissa | 1U << format.mantissa_bits;
  const int scale =
      static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias - static_cast<int>(format.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(significand), scale);
}

float decode_f16(std::uint16_t code) {
  const std::uint32_t magnitude = code & 0x7fffU;
  if (magnitude >= 0x7c00 || magnitude < 0x400) return decode_float(DType::f16, code);
  return std::bit_cast<float>((code & 0x8000U) << 16 | ((magnitude << 13) + ((127U - 15U) << 23)));
}

double find_smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::min();
    case DType::f32: return static_cast<double>(std::numeric_limits<float>::min());
    case DType::f8_e8m0: return 0;  // this type has only powers of two, and none is subnormal
    default: return is_floating(dtype) ? std::ldexp(1, 1 - get_float_format(dtype).bias) : 0;
  }
}

std::uint16_t encode_f16(double value) { return encode_16_bits(value, get_float_format(DType::f16)); }
std::uint16_t encode_bf16(double value) { return encode_16_bits(value, get_float_format(DType::bf16)); }

}  // namespace poise
