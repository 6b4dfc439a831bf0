#include "tensor/float_formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <poise/error.hpp>

namespace poise {
namespace {

using Specials = FloatFormat::Specials;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A NaN of an IEEE format keeps its sign and payload and becomes quiet, as in the processor's own conversions.
float decode_nan(bool negative, std::uint32_t mantissa, FloatFormat format) {
  return std::bit_cast<float>((negative ? 0x80000000U : 0U) | 0x7fc00000U | mantissa << (23 - format.mantissa_bits));
}

float decode_e8m0(std::uint32_t code) { return code == 0xff ? kNan : std::ldexp(1.0F, static_cast<int>(code) - 127); }

// A 16-bit format with IEEE specials.
std::uint16_t encode_16(double value, FloatFormat format) {
  const unsigned mantissa_bits = format.mantissa_bits;
  const std::uint32_t infinity = ((1U << format.exponent_bits) - 1) << mantissa_bits;
  const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1U << (mantissa_bits - 1));
  const double magnitude = std::abs(value);
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | infinity);
  if (magnitude == 0) return static_cast<std::uint16_t>(sign);
  const int smallest_exponent = 1 - format.bias;
  const int exponent = std::max(std::ilogb(magnitude), smallest_exponent);
  // In units of the last place, which are whole numbers; nearbyint rounds ties to even.
  const double units = std::nearbyint(std::ldexp(magnitude, static_cast<int>(mantissa_bits) - exponent));
  // Adding (not or-ing) lets a carry out of the mantissa raise the exponent, up to infinity.
  const auto code = (static_cast<std::uint32_t>(exponent - smallest_exponent) << mantissa_bits) + static_cast<std::uint32_t>(units);
  return static_cast<std::uint16_t>(sign | std::min(code, infinity));
}

}  // namespace

FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::f16: return {5, 10, 15, Specials::ieee};
    case DType::bf16: return {8, 7, 127, Specials::ieee};
    case DType::f8_e4m3: return {4, 3, 7, Specials::nan_only};
    case DType::f8_e5m2: return {5, 2, 15, Specials::ieee};
    case DType::f8_e4m3fnuz: return {4, 3, 8, Specials::fnuz};
    case DType::f8_e5m2fnuz: return {5, 2, 16, Specials::fnuz};
    case DType::f4_e2m1: return {2, 1, 1, Specials::none};
    default: throw Error(ErrorKind::internal, "no small floating-point format");
  }
}

float decode_float(DType dtype, std::uint32_t code) {
  if (dtype == DType::f8_e8m0) return decode_e8m0(code);
  if (dtype == DType::bf16) return std::bit_cast<float>(code << 16);  // the upper half of a float32, whatever it holds
  const FloatFormat format = float_format(dtype);
  const std::uint32_t mantissa = code & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t exponent = code >> format.mantissa_bits & ((1U << format.exponent_bits) - 1);
  const bool negative = (code >> (format.mantissa_bits + format.exponent_bits) & 1U) != 0;
  const std::uint32_t largest_exponent = (1U << format.exponent_bits) - 1;
  const std::uint32_t largest_mantissa = (1U << format.mantissa_bits) - 1;
  const float sign = negative ? -1.0F : 1.0F;
  if (format.specials == Specials::fnuz && negative && exponent == 0 && mantissa == 0) return kNan;
  if (format.specials == Specials::nan_only && exponent == largest_exponent && mantissa == largest_mantissa) return kNan;
  if (format.specials == Specials::ieee && exponent == largest_exponent) return mantissa == 0 ? sign * kInfinity : decode_nan(negative, mantissa, format);
  const std::uint32_t significand = exponent == 0 ? mantissa : mantissa | 1U << format.mantissa_bits;
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - format.bias - static_cast<int>(format.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(significand), scale);
}

std::uint16_t encode_f16(double value) { return encode_16(value, float_format(DType::f16)); }
std::uint16_t encode_bf16(double value) { return encode_16(value, float_format(DType::bf16)); }

}  // namespace poise
