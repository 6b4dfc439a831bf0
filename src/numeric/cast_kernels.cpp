#include "numeric/cast_kernels.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/cast_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "bytes/little_endian.hpp"
#include "numeric/float_formats.hpp"

// The vector loops for float16 need AVX2. On other targets, float16 is converted one number at a time.
#undef POISE_HAS_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define POISE_HAS_F16 1
#else
#define POISE_HAS_F16 0
#endif

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
using FloatTag = decltype(kFloats);
const hn::Rebind<std::uint16_t, FloatTag> kHalves;
const hn::Rebind<std::uint32_t, FloatTag> kWords;

template <typename V>
HWY_INLINE auto DecodeBf16(V halves) {
  return hn::BitCast(kFloats, hn::ShiftLeft<16>(hn::PromoteTo(kWords, halves)));
}

// Rounds to nearest even; a NaN keeps its sign and becomes quiet.
template <typename V>
HWY_INLINE auto EncodeBf16(V values) {
  const auto bits = hn::BitCast(kWords, values);
  const auto lowest_kept = hn::And(hn::ShiftRight<16>(bits), hn::Set(kWords, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(lowest_kept, hn::Set(kWords, 0x7fff))));
  const auto quiet_nan = hn::Or(hn::And(hn::ShiftRight<16>(bits), hn::Set(kWords, 0x8000)), hn::Set(kWords, 0x7fc0));
  const auto is_nan = hn::RebindMask(kWords, hn::IsNaN(values));
  return hn::TruncateTo(kHalves, hn::IfThenElse(is_nan, quiet_nan, rounded));
}

#if POISE_HAS_F16
const hn::Rebind<hwy::float16_t, FloatTag> kFloat16s;

template <typename V>
HWY_INLINE auto DecodeF16(V halves) {
  return hn::PromoteTo(kFloats, hn::BitCast(kFloat16s, halves));
}
template <typename V>
HWY_INLINE auto EncodeF16(V values) {
  // The instruction keeps a NaN's payload; encode_f16() does not, and the result must not depend on an element's place.
  const auto sign = hn::And(hn::BitCast(kWords, values), hn::Set(kWords, 0x80000000));
  const auto quiet_nan = hn::BitCast(kFloats, hn::Or(sign, hn::Set(kWords, 0x7fc00000)));
  return hn::BitCast(kHalves, hn::DemoteTo(kFloat16s, hn::IfThenElse(hn::IsNaN(values), quiet_nan, values)));
}
#endif

// Narrows whole vectors and adds to `stats`. Stops before a vector with an overflow. Returns how many elements it
// converted; the caller converts the others.
template <typename Narrow, typename Widen>
HWY_INLINE std::size_t NarrowVectors(DType dtype, const float* in, std::uint16_t* out, std::size_t count,
                                     CastStats& stats, Narrow narrow, Widen widen) {
  const std::size_t lanes = hn::Lanes(kFloats);
  const auto infinity = hn::Set(kFloats, std::numeric_limits<float>::infinity());
  const auto zero = hn::Zero(kFloats);
  const auto normal = hn::Set(kFloats, static_cast<float>(find_smallest_normal(dtype)));
  auto worst = zero;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(kFloats, in + i);
    const auto halves = narrow(value);
    const auto magnitude = hn::Abs(value);
    const auto result = hn::Abs(widen(halves));
    const auto finite = hn::Lt(magnitude, infinity);
    if (!hn::AllFalse(kFloats, hn::And(finite, hn::Eq(result, infinity)))) break;
    hn::StoreU(halves, kHalves, out + i);
    worst = hn::Max(worst, hn::IfThenElseZero(finite, hn::AbsDiff(magnitude, result)));
    const auto small = hn::And(hn::Lt(result, normal), hn::Ne(magnitude, zero));
    if (!hn::AllFalse(kFloats, small)) {
      const std::size_t zeros = hn::CountTrue(kFloats, hn::And(small, hn::Eq(result, zero)));
      stats.to_zero += zeros;
      stats.to_subnormal += hn::CountTrue(kFloats, small) - zeros;
    }
  }
  stats.values += i;
  stats.worst_error = std::max(stats.worst_error, static_cast<double>(hn::GetLane(hn::MaxOfLanes(kFloats, worst))));
  return i;
}

void WidenBf16(const std::byte* in, float* out, std::size_t count) {
  const std::size_t lanes = hn::Lanes(kFloats);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(DecodeBf16(hn::LoadU(kHalves, reinterpret_cast<const std::uint16_t*>(in) + i)), kFloats, out + i);
  }
  for (; i < count; ++i) out[i] = decode_float(DType::bf16, load_le<std::uint16_t>(in + 2 * i));
}

void WidenF16(const std::byte* in, float* out, std::size_t count) {
  std::size_t i = 0;
#if POISE_HAS_F16
  const std::size_t lanes = hn::Lanes(kFloats);
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(DecodeF16(hn::LoadU(kHalves, reinterpret_cast<const std::uint16_t*>(in) + i)), kFloats, out + i);
  }
#endif
  for (; i < count; ++i) out[i] = decode_float(DType::f16, load_le<std::uint16_t>(in + 2 * i));
}

std::size_t NarrowBf16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats) {
  return NarrowVectors(
      DType::bf16, in, out, count, stats, [](auto v) HWY_ATTR { return EncodeBf16(v); },
      [](auto v) HWY_ATTR { return DecodeBf16(v); });
}

std::size_t NarrowF16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats) {
#if POISE_HAS_F16
  return NarrowVectors(
      DType::f16, in, out, count, stats, [](auto v) HWY_ATTR { return EncodeF16(v); },
      [](auto v) HWY_ATTR { return DecodeF16(v); });
#else
  (void)in, (void)out, (void)count, (void)stats;
  return 0;
#endif
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(WidenBf16);
HWY_EXPORT(WidenF16);
HWY_EXPORT(NarrowBf16);
HWY_EXPORT(NarrowF16);

// Narrows elements [begin, end) one at a time: those that the vector loop leaves over. Returns the index of the first
// finite value that overflows, or `end`.
std::size_t narrow_one_by_one(DType dtype, const float* in, std::uint16_t* out, std::size_t begin, std::size_t end,
                              CastStats& stats) {
  const auto smallest_normal = static_cast<float>(find_smallest_normal(dtype));
  for (std::size_t i = begin; i < end; ++i) {
    out[i] = dtype == DType::f16 ? encode_f16(static_cast<double>(in[i])) : encode_bf16(static_cast<double>(in[i]));
    const float result = std::abs(decode_float(dtype, out[i]));
    const float magnitude = std::abs(in[i]);
    ++stats.values;
    if (!std::isfinite(magnitude)) continue;
    if (std::isinf(result)) return i;
    stats.worst_error = std::max(stats.worst_error, static_cast<double>(std::abs(magnitude - result)));
    if (magnitude != 0 && result == 0) ++stats.to_zero;
    if (result != 0 && result < smallest_normal) ++stats.to_subnormal;
  }
  return end;
}

}  // namespace

void CastStats::merge(const CastStats& other) {
  values += other.values;
  to_zero += other.to_zero;
  to_subnormal += other.to_subnormal;
  not_finite += other.not_finite;
  worst_error = std::max(worst_error, other.worst_error);
}

void widen_bf16(const std::byte* in, float* out, std::size_t count) { HWY_DYNAMIC_DISPATCH(WidenBf16)(in, out, count); }
void widen_f16(const std::byte* in, float* out, std::size_t count) { HWY_DYNAMIC_DISPATCH(WidenF16)(in, out, count); }

std::size_t narrow_f16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats) {
  const std::size_t done = HWY_DYNAMIC_DISPATCH(NarrowF16)(in, out, count, stats);
  return narrow_one_by_one(DType::f16, in, out, done, count, stats);
}

std::size_t narrow_bf16(const float* in, std::uint16_t* out, std::size_t count, CastStats& stats) {
  const std::size_t done = HWY_DYNAMIC_DISPATCH(NarrowBf16)(in, out, count, stats);
  return narrow_one_by_one(DType::bf16, in, out, done, count, stats);
}

}  // namespace poise
#endif
