// Unsigned codes of rows as float32.
#if defined(POISE_KERNELS_CODE_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_CODE_ROWS
#undef POISE_KERNELS_CODE_ROWS
#else
#define POISE_KERNELS_CODE_ROWS
#endif

#include <hwy/highway.h>

#include "kernels/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// A code a byte.
struct Codes8 {
  static std::size_t bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i)));
  }
};

// Two codes a byte.
struct Codes4 {
  static std::size_t bytes(std::size_t count) { return count / 2; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    return hn::ConvertTo(Floats(), hn::PromoteTo(integers, LoadNibbles(row, i)));
  }
};

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
