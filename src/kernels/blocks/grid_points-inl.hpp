// Loads points of a grid (grid_codes.cpp) for several rows at once, and decodes the signs and scales that are stored
// next to their indices.
#if defined(POISE_KERNELS_GRID_POINTS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_GRID_POINTS
#undef POISE_KERNELS_GRID_POINTS
#else
#define POISE_KERNELS_GRID_POINTS
#endif

#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "kernels/blocks/sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Returns a vector with at(row, 0) and at(row, 1), eight bytes each, for each row of the vector.
template <class D, class At>
HWY_INLINE hn::Vec<D> GatherRows(D tag, std::size_t row, const At& at) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::FixedTag<std::uint64_t, 1> eight;
    return hn::BitCast(
        tag, hn::Combine(hn::FixedTag<std::uint64_t, 2>(), hn::Set(eight, at(row, 1)), hn::Set(eight, at(row, 0))));
  } else {
    const hn::Half<D> half;
    return hn::Combine(tag, GatherRows(half, row + hn::MaxLanes(half) / 16, at), GatherRows(half, row, at));
  }
}

// Returns a vector with *at(row, 0) to *at(row, 3), four bytes each, for each row of the vector.
template <class D, class At>
HWY_INLINE hn::Vec<D> GatherFours(D tag, std::size_t row, const At& at) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::FixedTag<std::uint32_t, 1> one;
    const hn::FixedTag<std::uint32_t, 2> two;
    const auto low = hn::Combine(two, LoadU(one, at(row, 1)), LoadU(one, at(row, 0)));
    const auto high = hn::Combine(two, LoadU(one, at(row, 3)), LoadU(one, at(row, 2)));
    return hn::BitCast(tag, hn::Combine(hn::FixedTag<std::uint32_t, 4>(), high, low));
  } else {
    const hn::Half<D> half;
    return hn::Combine(tag, GatherFours(half, row + hn::MaxLanes(half) / 16, at), GatherFours(half, row, at));
  }
}

HWY_INLINE std::uint32_t Load16(Bytes from) {
  std::uint16_t number = 0;
  std::memcpy(&number, from, sizeof number);
  return number;
}

// Adds to each byte of seven signs the eighth sign, which makes the number of minus signs even.
HWY_INLINE Codes AddEighthSigns(Codes seven) {
  alignas(16) static constexpr std::uint8_t kEighth[16] = {0,   128, 128, 0,   128, 0,   0,   128,
                                                           128, 0,   0,   128, 0,   128, 128, 0};
  const hn::Repartition<std::uint16_t, CodeTag> words;
  const auto high = hn::BitCast(CodeTag(), hn::ShiftRight<4>(hn::BitCast(words, seven)));
  const auto folded = hn::And(hn::Xor(seven, high), hn::Set(CodeTag(), 15));
  return hn::Or(seven, hn::TableLookupBytes(hn::LoadDup128(CodeTag(), kEighth), folded));
}

// Expands words of 32 bits, whose lower 28 bits are four groups of seven signs, to four bytes of eight signs each.
HWY_INLINE Codes AddEighthSignsOfWords(Codes four) {
  const hn::Repartition<std::uint32_t, CodeTag> tag;
  const auto words = hn::BitCast(tag, four);
  const auto low = hn::Or(hn::And(words, hn::Set(tag, 0x7f)), hn::And(hn::ShiftLeft<1>(words), hn::Set(tag, 0x7f00)));
  const auto high = hn::Or(hn::And(hn::ShiftLeft<2>(words), hn::Set(tag, 0x7f0000)),
                           hn::And(hn::ShiftLeft<3>(words), hn::Set(tag, 0x7f000000)));
  return AddEighthSigns(hn::BitCast(CodeTag(), hn::Or(low, high)));
}

using FourBytesEach = hn::Vec<FourWords>;  // four bytes of each of four rows

// Returns the four halves (of four bits) of the lower two bytes of each word as four bytes, the lowest first.
HWY_INLINE FourBytesEach SplitHalves(FourBytesEach bytes) {
  const auto first = hn::And(bytes, hn::Set(FourWords(), 0x0000000f));
  const auto second = hn::And(hn::ShiftLeft<4>(bytes), hn::Set(FourWords(), 0x00000f00));
  const auto third = hn::And(hn::ShiftLeft<8>(bytes), hn::Set(FourWords(), 0x000f0000));
  const auto fourth = hn::And(hn::ShiftLeft<12>(bytes), hn::Set(FourWords(), 0x0f000000));
  return hn::Or(hn::Or(first, second), hn::Or(third, fourth));
}

// Returns twice each byte, plus 1.
HWY_INLINE FourBytesEach MakeOdd(FourBytesEach bytes) {
  return hn::Or(hn::ShiftLeft<1>(bytes), hn::Set(FourWords(), 0x01010101));
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
