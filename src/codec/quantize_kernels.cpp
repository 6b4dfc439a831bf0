#include "codec/quantize_kernels.hpp"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/quantize_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;

// Writes the least and greatest numbers of groups to `ranges`; returns the bits of the largest magnitude of all.
// Requires: groups are whole vectors, and not empty.
std::uint32_t FindGroupRanges(const float* in, std::span<GroupRange> ranges, std::size_t size) {
  const Floats floats;
  const Words words;
  const std::size_t lanes = hn::Lanes(floats);
  const auto magnitude_bits = hn::Set(words, 0x7fffffff);
  auto largest = hn::Zero(words);
  for (GroupRange& range : ranges) {
    auto min = hn::LoadU(floats, in);
    auto max = min;
    for (const float* const end = in + size; in < end; in += lanes) {
      const auto value = hn::LoadU(floats, in);
      largest = hn::Max(largest, hn::And(hn::BitCast(words, value), magnitude_bits));
      min = hn::Min(min, value);
      max = hn::Max(max, value);
    }
    range = {hn::GetLane(hn::MinOfLanes(floats, min)), hn::GetLane(hn::MaxOfLanes(floats, max))};
  }
  return hn::GetLane(hn::MaxOfLanes(words, largest));
}

// Scans whole vectors, and returns how many elements they have.
std::size_t FindExtremes(const float* in, std::size_t count, Extremes& extremes) {
  const std::size_t whole = count / hn::Lanes(Floats()) * hn::Lanes(Floats());
  if (whole == 0) return 0;
  GroupRange range;
  extremes.largest = FindGroupRanges(in, {&range, 1}, whole);
  extremes.min = range.min;
  extremes.max = range.max;
  return whole;
}

constexpr std::size_t kVectorsPerSum = 256;  // vectors that are summed in float32 before the sum is added in float64

// Refers to losses, lane by lane, because a struct cannot hold vectors of SVE. A Coder adds squares in units of
// delta^2, because squares of the numbers themselves might overflow float32.
struct Losses {
  hn::Vec<Floats>&worst, &errors, &values;

  // Adds the squares to `sums` in float64, and sets the squares to 0.
  HWY_INLINE void move_squares_to(QuantizationError& sums) const {
    sums.squared_error += static_cast<double>(hn::GetLane(hn::SumOfLanes(Floats(), errors)));
    sums.squared_values += static_cast<double>(hn::GetLane(hn::SumOfLanes(Floats(), values)));
    errors = values = hn::Zero(Floats());
  }
  HWY_INLINE double find_largest() const { return static_cast<double>(hn::GetLane(hn::MaxOfLanes(Floats(), worst))); }
};

// Converts vectors of numbers to codes. Requires: `step` is at least kLeastDelta, and its reciprocal is normal.
struct Coder {
  float delta, unit, lowest, highest;
  std::uint32_t zero;

  HWY_INLINE Coder(float step, const CodeRange& range)
      : delta(step),
        unit(1.0F / step),
        lowest(static_cast<float>(range.lowest)),
        highest(static_cast<float>(range.highest)),
        zero(static_cast<std::uint32_t>(range.zero)) {}

  HWY_INLINE void encode(const float* in, std::byte* codes, const Losses& losses) const {
    const hn::Rebind<std::uint8_t, Floats> bytes;
    const auto scale = hn::Set(Floats(), delta);
    const auto units = hn::Set(Floats(), unit);
    const auto number = hn::LoadU(Floats(), in);
#if HWY_NATIVE_FMA
    // The quotient is rounded exactly like a division, from an estimate and its remainder (Markstein). A division would
    // take as long as the rest of the loop.
    const auto enormous = hn::Set(Floats(), 0x1p30F);  // large enough to be clamped at the end, but not infinite
    const auto guess = hn::Max(hn::Neg(enormous), hn::Min(enormous, hn::Mul(number, units)));
    const auto exact = hn::MulAdd(hn::NegMulAdd(guess, scale, number), units, guess);
#else
    const auto exact = hn::Div(number, scale);
#endif
    // Adding `shift` rounds to an integer, ties to even, because float32 numbers this large have no fraction. The
    // low bits are the code.
    const auto shift = hn::Set(Floats(), 0x1.8p23F);
    const auto shifted = hn::Add(hn::Max(hn::Set(Floats(), lowest), hn::Min(hn::Set(Floats(), highest), exact)), shift);
    const auto code = hn::Sub(shifted, shift);
    const auto stored = hn::Add(hn::BitCast(Words(), shifted), hn::Set(Words(), zero));
    hn::StoreU(hn::TruncateTo(bytes, stored), bytes, reinterpret_cast<std::uint8_t*>(codes));
    const auto error = hn::Sub(number, hn::Mul(code, scale));
    losses.worst = hn::Max(losses.worst, hn::Abs(error));
    const auto relative = hn::Mul(error, units);
    losses.errors = hn::MulAdd(relative, relative, losses.errors);
    losses.values = hn::MulAdd(exact, exact, losses.values);
  }
};

// Quantizes whole vectors, and returns how many elements they have. Squares are in units of delta^2.
std::size_t QuantizeLinear(const float* in, std::size_t count, float delta, const CodeRange& range, std::byte* codes,
                           QuantizationError& sums) {
  const std::size_t lanes = hn::Lanes(Floats());
  const Coder coder(delta, range);
  auto worst = hn::Zero(Floats());
  auto errors = worst, values = worst;
  const Losses losses = {worst, errors, values};
  std::size_t i = 0;
  while (i + lanes <= count) {
    for (const std::size_t end = std::min(count, i + kVectorsPerSum * lanes); i + lanes <= end; i += lanes)
      coder.encode(in + i, codes + i, losses);
    losses.move_squares_to(sums);
  }
  sums.values = i;
  sums.worst = losses.find_largest();
  return i;
}

// Quantizes groups that are whole vectors.
void QuantizeGroups(const float* in, std::span<const GroupFactor> factors, std::size_t size, int largest_code,
                    std::byte* codes, QuantizationError& sums) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto worst = hn::Zero(Floats());
  auto all_errors = worst, all_values = worst;
  const Losses total = {worst, all_errors, all_values};
  std::size_t vectors = 0;
  for (const GroupFactor& group : factors) {
    const Coder coder(group.factor, {-group.zero, largest_code - group.zero, group.zero});
    auto errors = hn::Zero(Floats());
    auto values = errors;
    const Losses losses = {worst, errors, values};
    for (std::size_t i = 0; i < size; i += lanes) coder.encode(in + i, codes + i, losses);
    in += size;
    codes += size;
    const auto square = hn::Set(Floats(), group.factor * group.factor);
    all_errors = hn::MulAdd(errors, square, all_errors);
    all_values = hn::MulAdd(values, square, all_values);
    vectors += size / lanes;
    if (vectors < kVectorsPerSum) continue;
    total.move_squares_to(sums);
    vectors = 0;
  }
  total.move_squares_to(sums);
  sums.values = factors.size() * size;
  sums.worst = total.find_largest();
}

bool AreWholeVectors(std::size_t size) { return size % hn::Lanes(Floats()) == 0; }

// Measures whole vectors, and returns how many elements they have.
std::size_t MeasureLoss(const float* in, const float* decoded, std::size_t count, QuantizationError& error) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_HAVE_FLOAT64
  const hn::ScalableTag<double> doubles;
  const hn::Rebind<float, decltype(doubles)> floats;
  const std::size_t lanes = hn::Lanes(doubles);
  auto worst = hn::Zero(floats);
  auto errors0 = hn::Zero(doubles), errors1 = errors0, values0 = errors0,
       values1 = errors0;  // two sums of each, so that additions overlap
  const auto add = [&](std::size_t at, auto& errors, auto& values) HWY_ATTR {
    const auto number = hn::LoadU(floats, in + at);
    const auto lost = hn::Sub(number, hn::LoadU(floats, decoded + at));
    worst = hn::Max(worst, hn::Abs(lost));
    const auto wide_lost = hn::PromoteTo(doubles, lost);
    const auto wide_number = hn::PromoteTo(doubles, number);
    errors = hn::MulAdd(wide_lost, wide_lost, errors);
    values = hn::MulAdd(wide_number, wide_number, values);
  };
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    add(i, errors0, values0);
    add(i + lanes, errors1, values1);
  }
  error.values = i;
  error.worst = static_cast<double>(hn::GetLane(hn::MaxOfLanes(floats, worst)));
  error.squared_error = hn::GetLane(hn::SumOfLanes(doubles, hn::Add(errors0, errors1)));
  error.squared_values = hn::GetLane(hn::SumOfLanes(doubles, hn::Add(values0, values1)));
#else
  (void)in, (void)decoded, (void)count, (void)error;
#endif
  return i;
}

// Packs whole vectors of pairs, and returns how many codes they have.
std::size_t PackNibbles(const std::byte* codes, std::size_t count, std::byte* out) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> pairs;
  const hn::Rebind<std::uint8_t, decltype(pairs)> bytes;
  const std::size_t lanes = hn::Lanes(pairs);
  const auto nibble = hn::Set(pairs, 15);
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto both = hn::BitCast(pairs, hn::LoadU(hn::Repartition<std::uint8_t, decltype(pairs)>(),
                                                   reinterpret_cast<const std::uint8_t*>(codes) + i));
    const auto low = hn::And(both, nibble);
    const auto high = hn::ShiftLeft<4>(hn::And(hn::ShiftRight<8>(both), nibble));
    hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(hn::RebindToSigned<decltype(pairs)>(), hn::Or(low, high))), bytes,
               reinterpret_cast<std::uint8_t*>(out) + i / 2);
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

HWY_EXPORT(AreWholeVectors);
HWY_EXPORT(FindExtremes);
HWY_EXPORT(FindGroupRanges);
HWY_EXPORT(QuantizeLinear);
HWY_EXPORT(QuantizeGroups);
HWY_EXPORT(PackNibbles);
HWY_EXPORT(MeasureLoss);

constexpr float kLeastDelta = 0x1p-100F;  // below this, the remainder of a quotient may underflow

// Quantizes one number at a time. Handles tails, and scales that are too small or so large that their reciprocal is
// subnormal.
QuantizationError quantize_one_by_one(const float* in, std::size_t count, float delta, const CodeRange& range,
                                      std::byte* codes) {
  QuantizationError error;
  error.values = count;
  for (std::size_t i = 0; i < count; ++i) {
    const float code =
        std::nearbyint(std::clamp(in[i] / delta, static_cast<float>(range.lowest), static_cast<float>(range.highest)));
    codes[i] = static_cast<std::byte>(static_cast<int>(code) + range.zero);
    const auto value = static_cast<double>(in[i]);
    add_loss(error, value, value - static_cast<double>(code * delta));
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

QuantizationError quantize_linear(const float* in, std::size_t count, float delta, const CodeRange& range,
                                  std::byte* codes) {
  std::size_t done = 0;
  QuantizationError error;
  if (delta >= kLeastDelta && std::isnormal(1.0F / delta)) {
    done = HWY_DYNAMIC_DISPATCH(QuantizeLinear)(in, count, delta, range, codes, error);
    error.squared_error *= static_cast<double>(delta) * static_cast<double>(delta);
    error.squared_values *= static_cast<double>(delta) * static_cast<double>(delta);
  }
  error.merge(quantize_one_by_one(in + done, count - done, delta, range, codes + done));
  return error;
}

std::uint32_t find_group_ranges(std::span<const float> in, std::span<GroupRange> ranges) {
  const std::size_t size = in.size() / ranges.size();
  if (HWY_DYNAMIC_DISPATCH(AreWholeVectors)(size))
    return HWY_DYNAMIC_DISPATCH(FindGroupRanges)(in.data(), ranges, size);
  std::uint32_t largest = 0;
  for (std::size_t g = 0; g < ranges.size(); ++g) {
    const Extremes group = find_extremes(in.data() + g * size, size);
    ranges[g] = {group.min, group.max};
    largest = std::max(largest, group.largest);
  }
  return largest;
}

QuantizationError quantize_groups_linear(std::span<const float> in, std::span<const GroupFactor> factors,
                                         int largest_code, std::byte* codes) {
  QuantizationError error;
  const std::size_t size = in.size() / factors.size();
  if (HWY_DYNAMIC_DISPATCH(AreWholeVectors)(size)) {
    HWY_DYNAMIC_DISPATCH(QuantizeGroups)(in.data(), factors, size, largest_code, codes, error);
    return error;
  }
  for (std::size_t g = 0; g < factors.size(); ++g) {
    const int zero = factors[g].zero;
    error.merge(quantize_linear(in.data() + g * size, size, factors[g].factor, {-zero, largest_code - zero, zero},
                                codes + g * size));
  }
  return error;
}

QuantizationError measure_loss(const float* in, const float* decoded, std::size_t count) {
  QuantizationError error;
  std::size_t i = HWY_DYNAMIC_DISPATCH(MeasureLoss)(in, decoded, count, error);
  error.values = count;
  for (; i < count; ++i) add_loss(error, static_cast<double>(in[i]), static_cast<double>(in[i] - decoded[i]));
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
