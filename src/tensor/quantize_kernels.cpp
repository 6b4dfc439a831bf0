#include "tensor/quantize_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/quantize_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;

// Looks at whole vectors; returns how many elements that were.
std::size_t FindExtremes(const float* in, std::size_t count, Extremes& extremes) {
  const Floats floats;
  const Words words;
  const std::size_t lanes = hn::Lanes(floats);
  if (count < lanes) return 0;
  const auto magnitude_bits = hn::Set(words, 0x7fffffff);
  auto largest = hn::Zero(words);
  auto min = hn::LoadU(floats, in);
  auto max = min;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(floats, in + i);
    largest = hn::Max(largest, hn::And(hn::BitCast(words, value), magnitude_bits));
    min = hn::Min(min, value);
    max = hn::Max(max, value);
  }
  extremes = {hn::GetLane(hn::MaxOfLanes(words, largest)), hn::GetLane(hn::MinOfLanes(floats, min)), hn::GetLane(hn::MaxOfLanes(floats, max))};
  return i;
}

// Quantizes whole vectors; returns how many elements that were. The squares come in units of delta^2: those of the numbers
// might leave the range of float32. Few enough are added up before they go into the sums in double.
std::size_t QuantizeLinear(const float* in, std::size_t count, float delta, const CodeRange& range, std::byte* codes, QuantizationError& sums) {
  constexpr std::size_t kVectorsPerSum = 256;
  const Floats floats;
  const Words words;
  const hn::RebindToSigned<Floats> integers;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const std::size_t lanes = hn::Lanes(floats);
  const auto zero = hn::Set(integers, range.zero);
  const auto scale = hn::Set(floats, delta);
  const auto units = hn::Set(floats, 1.0F / delta);
  const auto highest = hn::Set(floats, static_cast<float>(range.highest));
  const auto lowest = hn::Set(floats, static_cast<float>(range.lowest));
  [[maybe_unused]] const auto enormous = hn::Set(floats, 0x1p30F);  // is clamped in the end, but no infinity
  auto worst = hn::Zero(floats);
  std::size_t i = 0;
  while (i + lanes <= count) {
    auto errors = hn::Zero(floats);
    auto values = hn::Zero(floats);
    for (const std::size_t end = std::min(count, i + kVectorsPerSum * lanes); i + lanes <= end; i += lanes) {
      const auto number = hn::LoadU(floats, in + i);
#if HWY_NATIVE_FMA
      // The quotient as division rounds it (Markstein): a guess, and what remains of it. A division would take as long as all the rest.
      const auto guess = hn::Max(hn::Neg(enormous), hn::Min(enormous, hn::Mul(number, units)));
      const auto exact = hn::MulAdd(hn::NegMulAdd(guess, scale, number), units, guess);
#else
      const auto exact = hn::Div(number, scale);
#endif
      const auto code = hn::Round(hn::Max(lowest, hn::Min(highest, exact)));
      const auto stored = hn::BitCast(words, hn::Add(hn::ConvertTo(integers, code), zero));
      hn::StoreU(hn::TruncateTo(bytes, stored), bytes, reinterpret_cast<std::uint8_t*>(codes) + i);
      const auto error = hn::Sub(number, hn::Mul(code, scale));
      worst = hn::Max(worst, hn::Abs(error));
      const auto relative = hn::Mul(error, units);
      errors = hn::MulAdd(relative, relative, errors);
      values = hn::MulAdd(exact, exact, values);
    }
    sums.squared_error += static_cast<double>(hn::GetLane(hn::SumOfLanes(floats, errors)));
    sums.squared_values += static_cast<double>(hn::GetLane(hn::SumOfLanes(floats, values)));
  }
  sums.values = i;
  sums.worst = static_cast<double>(hn::GetLane(hn::MaxOfLanes(floats, worst)));
  return i;
}

// Packs whole vectors of pairs; returns how many codes that were.
std::size_t PackNibbles(const std::byte* codes, std::size_t count, std::byte* out) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> pairs;
  const hn::Rebind<std::uint8_t, decltype(pairs)> bytes;
  const std::size_t lanes = hn::Lanes(pairs);
  const auto nibble = hn::Set(pairs, 15);
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto both = hn::BitCast(pairs, hn::LoadU(hn::Repartition<std::uint8_t, decltype(pairs)>(), reinterpret_cast<const std::uint8_t*>(codes) + i));
    const auto low = hn::And(both, nibble);
    const auto high = hn::ShiftLeft<4>(hn::And(hn::ShiftRight<8>(both), nibble));
    hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(hn::RebindToSigned<decltype(pairs)>(), hn::Or(low, high))), bytes, reinterpret_cast<std::uint8_t*>(out) + i / 2);
  }
#else
  (void)codes, (void)count, (void)out;
#endif
  return i;
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(FindExtremes);
HWY_EXPORT(QuantizeLinear);
HWY_EXPORT(PackNibbles);

constexpr float kLeastDelta = 0x1p-100F;  // below, what remains of a quotient may be lost

// One number after the other: tails, and scales too small or whose reciprocal float32 does not hold.
QuantizationError quantize_scalar(const float* in, std::size_t count, float delta, const CodeRange& range, std::byte* codes) {
  QuantizationError error;
  error.values = count;
  for (std::size_t i = 0; i < count; ++i) {
    const float code = std::nearbyint(std::clamp(in[i] / delta, static_cast<float>(range.lowest), static_cast<float>(range.highest)));
    codes[i] = static_cast<std::byte>(static_cast<int>(code) + range.zero);
    const auto value = static_cast<double>(in[i]);
    const double lost = value - static_cast<double>(code * delta);
    error.worst = std::max(error.worst, std::abs(lost));
    error.squared_error += lost * lost;
    error.squared_values += value * value;
  }
  return error;
}

}  // namespace

void Extremes::merge(const Extremes& other) {
  largest = std::max(largest, other.largest);
  min = std::min(min, other.min);
  max = std::max(max, other.max);
}

Extremes find_extremes(const float* in, std::size_t count) {
  Extremes extremes{0, in[0], in[0]};
  for (std::size_t i = HWY_DYNAMIC_DISPATCH(FindExtremes)(in, count, extremes); i < count; ++i) {
    extremes.merge({std::bit_cast<std::uint32_t>(in[i]) & 0x7fffffff, in[i], in[i]});
  }
  return extremes;
}

QuantizationError quantize_linear(const float* in, std::size_t count, float delta, const CodeRange& range, std::byte* codes) {
  std::size_t done = 0;
  QuantizationError error;
  if (delta >= kLeastDelta && std::isnormal(1.0F / delta)) {
    done = HWY_DYNAMIC_DISPATCH(QuantizeLinear)(in, count, delta, range, codes, error);
    error.squared_error *= static_cast<double>(delta) * static_cast<double>(delta);
    error.squared_values *= static_cast<double>(delta) * static_cast<double>(delta);
  }
  error.merge(quantize_scalar(in + done, count - done, delta, range, codes + done));
  return error;
}

void pack_nibbles(const std::byte* codes, std::size_t count, std::byte* out) {
  for (std::size_t i = HWY_DYNAMIC_DISPATCH(PackNibbles)(codes, count, out); i < count; i += 2) {
    const std::byte high = i + 1 < count ? codes[i + 1] << 4 : std::byte{0};
    out[i / 2] = (codes[i] & std::byte{0x0f}) | high;
  }
}

}  // namespace poise
#endif
