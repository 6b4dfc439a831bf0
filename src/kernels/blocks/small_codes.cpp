// Products with TQ2_0: codes of two bits, which a float16 scale of the block multiplies.
// codec/blocks/small_codes.cpp says what is where.
#include "kernels/blocks/block_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/small_codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/blocks/sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

struct Tq2_0Type;

#else

struct Tq2_0Type {
  static constexpr std::size_t kElements = 256;
  static constexpr std::size_t kBytes = 66;
  static constexpr std::size_t kScaled = 256;
  static constexpr bool kHasMins = false;
  static constexpr float kOffset = 1;

  static HWY_INLINE void factors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, Factors& out) {
    FourHalvesOfBlocks(rows, start + 64, kBytes, blocks, out.scales);
  }
  static HWY_INLINE void multiply(BlockSums& sums) {
    ScaledSum scaled;
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Codes four = sums.load(32 * half + 16 * i);
        sums.add<false>(scaled, MaskedShift<0>(four, 3), 8 * half + i);
        sums.add<false>(scaled, MaskedShift<-2>(four, 12), 8 * half + i + 2);
        sums.add<false>(scaled, MaskedShift<-4>(four, 48), 8 * half + i + 4);
        sums.add<false>(scaled, MaskedShift<-6>(four, 192), 8 * half + i + 6);
      }
    }
    sums.finish(scaled.total(), 0);
  }
};

#endif

const TypeKernels& Tq2_0() { return BlockKernels<Tq2_0Type>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(Tq2_0);

}  // namespace

const TypeKernels& tq2_0_kernels() { return HWY_DYNAMIC_DISPATCH(Tq2_0)(); }

}  // namespace poise
#endif
