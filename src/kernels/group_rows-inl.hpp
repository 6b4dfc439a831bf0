// Rows of numbers in groups of columns that share a scale and a zero point: (number - zero) * scale, as float32.
#if defined(POISE_KERNELS_GROUP_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_GROUP_ROWS
#undef POISE_KERNELS_GROUP_ROWS
#else
#define POISE_KERNELS_GROUP_ROWS
#endif

#include <algorithm>

#include <hwy/highway.h>

#include "kernels/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Unsigned codes, one a byte.
struct Codes8 {
  explicit Codes8(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i)));
  }
};

// Two codes a byte.
struct Codes4 {
  explicit Codes4(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return count / 2; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadNibbles(row, i)));
  }
};

// Numbers makes float32 of stored numbers, from an element of a row on; bytes(n) is the size of n elements. Factors has
// the first group of a row, the group of a column, counted from there, and the column at which it ends; and the scale
// and the zero point of a group in every lane. Groups are whole vectors, as columns of a part are.
template <class Numbers, class Factors>
void DecodeGroups(const StoredRows& matrix, const DecodedPart& part) {
  const Numbers numbers(matrix);
  const Factors factors(matrix);
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t r = part.first; r < part.last; ++r) {
    const Bytes row = reinterpret_cast<Bytes>(matrix.data) + r * Numbers::bytes(matrix.columns);
    const std::size_t first = factors.first_group(r);
    float* const out = part.out + (r - part.first) * part.stride;
    for (std::size_t i = 0; i < part.count;) {
      const std::size_t g = factors.group(part.begin + i);
      const std::size_t end = std::min(part.count, factors.group_end(g) - part.begin);
      const auto scale = factors.scale(first + g);
      const auto zero = factors.zero(first + g);
      for (; i < end; i += lanes)
        hn::StoreU(hn::Mul(hn::Sub(numbers(row, part.begin + i), zero), scale), Floats(), out + i);
    }
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
