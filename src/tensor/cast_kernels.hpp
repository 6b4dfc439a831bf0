// The vector loops behind cast.cpp, one per pair of widths, chosen for the processor at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cast.hpp"

namespace poise {

// Elements to float32; `in` needs no alignment.
void widen_f16(const std::byte* in, float* out, std::size_t count);
void widen_bf16(const std::byte* in, float* out, std::size_t count);

// float32 to elements, rounding to nearest even. Adds to `stats`; returns the index of the first finite value that
// overflows, or `count`.
std::size_t narrow_f16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats);
std::size_t narrow_bf16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats);

}  // namespace poise
