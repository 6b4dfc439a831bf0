// Declares the grids of IQ1_S to IQ3_S: points of eight or four coordinates, a byte each, the first in the lowest byte.
#pragma once

#include <array>
#include <cstdint>

namespace poise {

extern const std::array<std::uint64_t, 256> kGridIq2Xxs;
extern const std::array<std::uint64_t, 512> kGridIq2Xs;
extern const std::array<std::uint64_t, 1024> kGridIq2S;
extern const std::array<std::uint32_t, 256> kGridIq3Xxs;
extern const std::array<std::uint32_t, 512> kGridIq3S;
extern const std::array<std::uint64_t, 2048> kGridIq1;  // the coordinates are -1, 0 and 1; for IQ1_S and IQ1_M

}  // namespace poise
