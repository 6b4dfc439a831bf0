// Converts small floating-point formats, bit by bit. Every faster conversion must have the results of these functions,
// except that it may keep a signaling NaN of float16, which decode_float() makes quiet.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include <poise/dtype.hpp>

#include "bytes/number_text.hpp"

namespace poise {

// Describes how the codes of a format are read as numbers.
struct FloatFormat {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  int bias;
  enum class Specials : std::uint8_t {
    ieee,      // the largest exponent holds infinities and NaN
    nan_only,  // NaN has all bits of exponent and mantissa set; there are no infinities
    fnuz,      // only "negative zero" is NaN
    none,
  } specials;
};

// Requires: f16, bf16, f8_e4m3, f8_e5m2, f8_e4m3fnuz, f8_e5m2fnuz or f4_e2m1.
FloatFormat get_float_format(DType dtype);

// Returns the exact number that a code stands for. In f8_e8m0 this is 2^(code - 127), or NaN for 0xff.
float decode_float(DType dtype, std::uint32_t code);

// Returns the same as decode_float(DType::f16, code), but faster.
float decode_f16(std::uint16_t code);

inline constexpr double kLargestF16 = 65504;

// Returns the smallest positive number that is not subnormal; 0 for f8_e8m0 and for types that are not floating-point.
double find_smallest_normal(DType dtype);

// Returns the nearest f16 or bf16, ties to even; NaN stays NaN, overflow becomes infinity.
std::uint16_t encode_f16(double value);
std::uint16_t encode_bf16(double value);

// Returns the double that is spelled like the float: 1e-05, not 9.999999747378752e-06.
inline double convert_by_spelling(float value) { return parse_double(fmt::format("{}", value)).value(); }

}  // namespace poise
