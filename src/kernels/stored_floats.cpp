// Weights stored as floating-point numbers.
#include <algorithm>
#include <cstring>

#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stored_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/rows-inl.hpp"
#include "kernels/vectors-inl.hpp"

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

// Two parts are exactly a float16 number: the first has its 11 bits rounded to 8, and the remainder has fewer. A number
// half way is rounded away from zero. The second part of an infinity is NaN.
void SplitF16(const StoredRows& matrix, const SplitRow& row) {
  const hn::RebindToUnsigned<Floats> words;
  const hn::Rebind<std::uint16_t, Floats> halves;
  const LoadF16 loader(matrix);
  const Bytes from = reinterpret_cast<Bytes>(matrix.data) + LoadF16::bytes(row.row * matrix.columns + row.begin);
  const auto split = [&](auto number, std::uint16_t* first, std::uint16_t* second) HWY_ATTR {
    const auto rounded =
        hn::And(hn::Add(hn::BitCast(words, number), hn::Set(words, 0x8000)), hn::Set(words, 0xffff0000));
    const auto rest = hn::Sub(number, hn::BitCast(Floats(), rounded));
    hn::StoreU(hn::TruncateTo(halves, hn::ShiftRight<16>(rounded)), halves, first);
    hn::StoreU(hn::TruncateTo(halves, hn::ShiftRight<16>(hn::BitCast(words, rest))), halves, second);
  };
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= row.count; i += lanes) split(loader(from, i), row.parts[0] + i, row.parts[1] + i);
  if (i == row.count) return;
  std::uint16_t first[kMaxLanes];
  std::uint16_t second[kMaxLanes];
  split(LoadTail(loader, from, i, row.count - i), first, second);
  std::copy_n(first, row.count - i, row.parts[0] + i);
  std::copy_n(second, row.count - i, row.parts[1] + i);
}

void CopyBf16(const StoredRows& matrix, const SplitRow& row) {
  std::memcpy(row.parts[0], matrix.data + LoadBf16::bytes(row.row * matrix.columns + row.begin),
              LoadBf16::bytes(row.count));
}

template <typename Loader, auto kSplit>
const TypeKernels& KernelsOf() {
  static constexpr TypeKernels kKernels = {.decode = &DecodeRows<Loader>,
                                           .multiply_floats = &MultiplyFloats<Loader>,
                                           .add_rows = &AddRows<Loader>,
                                           .split = kSplit};
  return kKernels;
}

const TypeKernels& F32() { return KernelsOf<LoadF32, nullptr>(); }
const TypeKernels& F16() { return KernelsOf<LoadF16, &SplitF16>(); }
const TypeKernels& Bf16() { return KernelsOf<LoadBf16, &CopyBf16>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(f32_kernels, F32)
POISE_EXPORT_KERNELS(f16_kernels, F16)
POISE_EXPORT_KERNELS(bf16_kernels, Bf16)

}  // namespace poise
#endif
