// Multiplies by weights that are stored as floating-point numbers.
#include <algorithm>
#include <cstring>

#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stored_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/integer_sums-inl.hpp"
#include "kernels/round_step-inl.hpp"
#include "kernels/rows-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

struct LoadF32 {
  explicit LoadF32(const StoredRows&) {}
  static std::size_t count_bytes(std::size_t count) { return 4 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    return LoadU(Floats(), reinterpret_cast<const float*>(row + count_bytes(i)));
  }
};

struct LoadF16 {
  explicit LoadF16(const StoredRows&) {}
  static std::size_t count_bytes(std::size_t count) { return 2 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    return ConvertHalves(Floats(), LoadU(halves, reinterpret_cast<const std::uint16_t*>(row + count_bytes(i))));
  }
};

struct LoadBf16 {
  explicit LoadBf16(const StoredRows&) {}
  static std::size_t count_bytes(std::size_t count) { return 2 * count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const hn::RebindToUnsigned<Floats> words;
    const auto codes = LoadU(halves, reinterpret_cast<const std::uint16_t*>(row + count_bytes(i)));
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, codes)));
  }
};

// Splits float16 numbers into sums of two bfloat16 numbers, exactly: the first part is the number's 11 bits rounded to
// 8, ties away from zero, and the remainder has fewer bits. The second part of an infinity is NaN.
void SplitF16(const StoredRows& matrix, const SplitRow& row) {
  const hn::RebindToUnsigned<Floats> words;
  const hn::Rebind<std::uint16_t, Floats> halves;
  const LoadF16 loader(matrix);
  const Bytes from = reinterpret_cast<Bytes>(matrix.data) + LoadF16::count_bytes(row.row * matrix.columns + row.begin);
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
  std::memcpy(row.parts[0], matrix.data + LoadBf16::count_bytes(row.row * matrix.columns + row.begin),
              LoadBf16::count_bytes(row.count));
}

#if HWY_TARGET <= HWY_AVX3 && POISE_HAVE_VNNI

// Rounds rows to integers, and stores them in a panel (PanelIntegers::rounded).
template <class Loader>
void RoundRows(const StoredRows& matrix, const CodePart& part) {
  const Loader loader(matrix);
  const std::size_t row_bytes = Loader::count_bytes(matrix.columns);
  const std::size_t asked = Loader::count_bytes(part.count);
  alignas(64) std::int16_t integers[4][kMostRoundedStep] = {};
  for (std::size_t r = part.first; r < part.last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, part.last);
    // Prefetches the bytes that are read next: the same columns of the next panel, and the next columns of these rows.
    for (const Bytes row : four.rows) {
      const Bytes from = row + Loader::count_bytes(part.begin);
      for (std::size_t i = 0; i < asked; i += 64) {
        __builtin_prefetch(from + kCodeRows * row_bytes + i, 0, 2);
        __builtin_prefetch(from + asked + i, 0, 3);
      }
    }
    for (std::size_t i = 0; i < part.count; i += part.step) {
      float* const scales = part.scales + i / part.step * kCodeRows + (r - part.first);
      for (std::size_t k = 0; k < 4; ++k) {
        const auto load = [&](std::size_t at) HWY_ATTR { return loader(four.rows[k], part.begin + i + at); };
        scales[k] = RoundStepTo16Bits<kLargestRounded>(load, part.step, integers[k]).scale;
      }
      StorePairs(integers, part.step, part.codes + (i / 2 * kCodeRows + r - part.first) * 4, 4 * kCodeRows);
    }
  }
}

// Rounds the numbers of 16 rows in a step.
HWY_INLINE void RoundVectors(const float* numbers, std::size_t columns, std::size_t stride, std::uint8_t* codes,
                             float* scales) {
  const StepFloats floats;
  const hn::RebindToUnsigned<StepFloats> bits;
  auto largest_bits = hn::Zero(bits);  // NaN and infinity are larger than numbers
  for (std::size_t i = 0; i < columns; ++i)
    largest_bits = hn::Max(largest_bits, hn::BitCast(bits, hn::Abs(hn::LoadU(floats, numbers + i * stride))));
  const auto largest = hn::BitCast(floats, largest_bits);
  const auto is_zero = hn::Lt(largest, hn::Set(floats, kLeastScaled));
  const auto is_finite = hn::Le(largest, hn::Set(floats, std::numeric_limits<float>::max()));
  const auto has_scale = hn::AndNot(is_zero, is_finite);
  const auto most = hn::Set(floats, static_cast<float>(kLargestRounded));
  const auto scale = hn::IfThenElse(is_finite, hn::IfThenZeroElse(is_zero, hn::Div(largest, most)),
                                    hn::Set(floats, std::numeric_limits<float>::quiet_NaN()));
  hn::StoreU(scale, floats, scales);
  const auto factor = hn::IfThenElseZero(has_scale, hn::Div(most, largest));
  const auto round = [&](std::size_t i) HWY_ATTR {
    return hn::BitCast(bits, hn::NearestInt(hn::Mul(hn::LoadU(floats, numbers + i * stride), factor)));
  };
  for (std::size_t i = 0; i < columns; i += 2) {
    const auto pairs = hn::Or(hn::And(round(i), hn::Set(bits, 0xffff)), hn::ShiftLeft<16>(round(i + 1)));
    hn::StoreU(pairs, bits, reinterpret_cast<std::uint32_t*>(codes) + i / 2 * kCodeRows);
  }
}

void RoundPanelStep(const float* numbers, std::size_t columns, std::size_t stride, std::uint8_t* codes, float* scales) {
  for (std::size_t r = 0; r < kCodeRows; r += hn::Lanes(StepFloats()))
    RoundVectors(numbers + r, columns, stride, codes + 4 * r, scales + r);
}

template <class Loader>
constexpr CodeForm kRounded = {
    .expand = &RoundRows<Loader>, .elements = 16, .integers = PanelIntegers::rounded, .vnni = true};

#else

void RoundPanelStep(const float*, std::size_t, std::size_t, std::uint8_t*, float*) {}

template <class Loader>
constexpr CodeForm kRounded = {};

#endif

template <typename Loader, auto kSplit, const CodeForm& kPanels>
const TypeKernels& GetKernelsFor() {
  static constexpr TypeKernels kKernels = {.decode = &DecodeRows<Loader>,
                                           .multiply_floats = &MultiplyFloats<Loader>,
                                           .add_rows = &AddRows<Loader>,
                                           .panels = kPanels,
                                           .split = kSplit};
  return kKernels;
}

constexpr CodeForm kNoPanels = {};

const TypeKernels& GetF32() { return GetKernelsFor<LoadF32, nullptr, kNoPanels>(); }
const TypeKernels& GetF16() { return GetKernelsFor<LoadF16, &SplitF16, kRounded<LoadF16>>(); }
const TypeKernels& GetBf16() { return GetKernelsFor<LoadBf16, &CopyBf16, kRounded<LoadBf16>>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_f32_kernels, GetF32)
POISE_EXPORT_KERNELS(get_f16_kernels, GetF16)
POISE_EXPORT_KERNELS(get_bf16_kernels, GetBf16)

HWY_EXPORT(RoundPanelStep);

void round_panel_step(const float* numbers, std::size_t columns, std::size_t stride, std::uint8_t* codes,
                      float* scales) {
  HWY_DYNAMIC_DISPATCH(RoundPanelStep)(numbers, columns, stride, codes, scales);
}

}  // namespace poise
#endif
