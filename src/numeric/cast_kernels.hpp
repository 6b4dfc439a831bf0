// Converts arrays of numbers between float32 and 16-bit types, with statistics. Highway chooses the vector loops for
// the processor at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

// Counts what casts of numbers to a narrower type lose.
struct CastStats {
  std::uint64_t values = 0;
  std::uint64_t to_zero = 0;       // became zero, but were not zero
  std::uint64_t to_subnormal = 0;  // are below the target's normal range (not counting zeros)
  std::uint64_t not_finite = 0;    // infinite or NaN; they stay so
  double worst_error = 0;          // max |x - cast(x)| over finite values

  void merge(const CastStats& other);
};

// Each function converts elements to float32. `in` needs no alignment.
void widen_f16(const std::byte* in, float* out, std::size_t count);
void widen_bf16(const std::byte* in, float* out, std::size_t count);

// Each function converts float32 to elements, rounded to nearest, ties to even. Adds to `stats`, except to not_finite.
// Returns the index of the first finite value that overflows, or `count`.
std::size_t narrow_f16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats);
std::size_t narrow_bf16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats);

}  // namespace poise
