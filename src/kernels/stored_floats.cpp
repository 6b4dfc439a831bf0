// Weights stored as floating-point numbers.
#include "kernels/stored_type.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stored_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/halves-inl.hpp"
#include "kernels/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

struct LoadF32 {
  explicit LoadF32(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return 4 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    return LoadU(Floats(), reinterpret_cast<const float*>(row + bytes(i)));
  }
};

struct LoadF16 {
  explicit LoadF16(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return 2 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    return HalvesToFloats(Floats(), LoadU(halves, reinterpret_cast<const std::uint16_t*>(row + bytes(i))));
  }
};

struct LoadBf16 {
  explicit LoadBf16(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return 2 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const hn::RebindToUnsigned<Floats> words;
    const auto codes = LoadU(halves, reinterpret_cast<const std::uint16_t*>(row + bytes(i)));
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, codes)));
  }
};

template <typename Loader>
const TypeKernels& KernelsOf() {
  static constexpr TypeKernels kKernels = {
      .decode = &DecodeRows<Loader>, .multiply_floats = &MultiplyFloats<Loader>, .add_rows = &AddRows<Loader>};
  return kKernels;
}

const TypeKernels& F32() { return KernelsOf<LoadF32>(); }
const TypeKernels& F16() { return KernelsOf<LoadF16>(); }
const TypeKernels& Bf16() { return KernelsOf<LoadBf16>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(F32);
HWY_EXPORT(F16);
HWY_EXPORT(Bf16);

}  // namespace

const TypeKernels& f32_kernels() { return HWY_DYNAMIC_DISPATCH(F32)(); }
const TypeKernels& f16_kernels() { return HWY_DYNAMIC_DISPATCH(F16)(); }
const TypeKernels& bf16_kernels() { return HWY_DYNAMIC_DISPATCH(Bf16)(); }

}  // namespace poise
#endif
