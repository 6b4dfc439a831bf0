// Converts the x of few tokens to integers (KernelInput::Words and KernelInput::Bytes).
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/integer_input.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/round_step-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void ConvertToWords(const float*, std::size_t, KernelInput::Words&) {}
void ConvertToBytes(const float*, std::size_t, KernelInput::Bytes&) {}

#else

using Words = hn::ScalableTag<std::int16_t>;
constexpr std::size_t kBlock = KernelInput::kIntegerBlock;

// Returns the bits of the largest magnitude. Magnitudes are compared as integers: infinity is above all finite numbers,
// and NaN above infinity.
std::uint32_t FindLargestMagnitude(const float* x, std::size_t count) {
  const hn::RebindToUnsigned<Floats> bits;
  const auto magnitude = hn::Set(bits, 0x7fffffffU);
  const std::size_t lanes = hn::Lanes(Floats());
  auto largest = hn::Zero(bits);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) largest = hn::Max(largest, hn::And(hn::BitCast(bits, Load(x + i)), magnitude));
  if (i < count) largest = hn::Max(largest, hn::And(hn::BitCast(bits, LoadTail(x + i, count - i)), magnitude));
  return hn::GetLane(hn::MaxOfLanes(bits, largest));
}

// Distributes integers over planes: plane p gets every kPlanes-th integer, from the p-th on.
template <std::size_t kPlanes>
void Deinterleave(const std::int16_t* codes, std::size_t count, std::int16_t* out) {
  const Words words;
  const std::size_t lanes = hn::Lanes(words);
  const std::size_t run = count / kPlanes;
  for (std::size_t i = 0; i < run; i += lanes) {
    hn::Vec<Words> a, b, c, d;
    if constexpr (kPlanes == 2) {
      hn::LoadInterleaved2(words, codes + 2 * i, a, b);
    } else {
      hn::LoadInterleaved4(words, codes + 4 * i, a, b, c, d);
      hn::StoreU(c, words, out + 2 * run + i);
      hn::StoreU(d, words, out + 3 * run + i);
    }
    hn::StoreU(a, words, out + i);
    hn::StoreU(b, words, out + run + i);
  }
}

// Rounds a block of x to integers in `codes`, padded with zeros, and returns their scale. If all magnitudes are below
// 1e-30, the integers and the scale are 0. If an x is not finite, the integers are 0 and the scale is NaN.
float RoundBlock(const float* x, std::size_t count, std::size_t padded, std::int16_t* codes) {
  constexpr float kLargest = 32767;
  std::fill_n(codes, padded, std::int16_t{0});
  const std::uint32_t bits = FindLargestMagnitude(x, count);
  float largest = 0;
  std::memcpy(&largest, &bits, sizeof largest);
  if (!(largest <= std::numeric_limits<float>::max())) return std::numeric_limits<float>::quiet_NaN();
  if (largest < kLeastScaled) return 0;
  const hn::RebindToSigned<Floats> integers;
  const hn::Rebind<std::int16_t, Floats> narrow;
  const auto factor = hn::Set(Floats(), kLargest / largest);
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(Load(x + i), factor))), narrow, codes + i);
  if (i < count) {  // the rest of the vector is zero, and inside the padding
    const hn::Vec<decltype(integers)> rest = hn::NearestInt(hn::Mul(LoadTail(x + i, count - i), factor));
    hn::StoreU(hn::DemoteTo(narrow, rest), narrow, codes + i);
  }
  return largest / kLargest;
}

float SumIntegers(const std::int16_t* codes, std::size_t count) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += codes[i];
  return static_cast<float>(sum);
}

void ConvertToWords(const float* x, std::size_t t, KernelInput::Words& out) {
  HWY_ALIGN std::int16_t buffer[kBlock];
  std::int16_t* integers = out.numbers.data() + t * out.blocks() * kBlock;
  float* scales = out.scales.data() + t * out.blocks();
  float* sums = out.sums.data() + t * out.sums_stride;
  if (out.group_size == 0) *sums = 0;
  for (std::size_t begin = 0; begin < out.columns; begin += kBlock) {
    const std::size_t count = std::min(kBlock, out.columns - begin);
    const std::size_t padded = (count + KernelInput::kPadding - 1) / KernelInput::kPadding * KernelInput::kPadding;
    const float scale = RoundBlock(x + begin, count, padded, buffer);
    *scales++ = scale;
    if (out.group_size == 0) {
      *sums += scale * SumIntegers(buffer, count);
    } else {
      for (std::size_t i = 0; i < count; i += out.group_size) *sums++ = scale * SumIntegers(buffer + i, out.group_size);
    }
    if (out.planes == 2) {
      Deinterleave<2>(buffer, padded, integers);
    } else {
      Deinterleave<4>(buffer, padded, integers);
    }
    integers += kBlock;
  }
}

// Requires: the columns are a multiple of kByteBlock; groups are of 16 columns or of 32.
void ConvertToBytes(const float* x, std::size_t t, KernelInput::Bytes& out) {
  constexpr std::size_t kCount = KernelInput::kByteBlock;
  static_assert(kCount == 32);
  const std::size_t blocks = out.columns / kCount;
  std::int8_t* const integers = out.numbers.data() + t * out.columns;
  std::int16_t* const integer_sums = out.integer_sums.data() + t * (out.columns / 16);
  float* const block_scales = out.block_scales.data() + t * blocks;
  float* const block_sums = out.block_sums.data() + t * blocks;
  float* scales = out.scales.data() + t * out.sums_stride;
  float* sums = out.sums.data() + t * out.sums_stride;
  for (std::size_t block = 0; block < blocks; ++block) {
    const RoundedStep step = RoundStep<false>(x + block * kCount, kCount, nullptr, integers + block * kCount);
    const float scale = step.scale;
    const std::int32_t second = step.sum - step.first;
    integer_sums[2 * block] = static_cast<std::int16_t>(step.first);
    integer_sums[2 * block + 1] = static_cast<std::int16_t>(second);
    block_scales[block] = scale;
    block_sums[block] = scale * static_cast<float>(step.sum);
    const auto add = [&](float sum) {
      scales = std::fill_n(scales, 4, scale);
      sums = std::fill_n(sums, 4, sum);
    };
    if (out.group_size == 16) {
      add(scale * static_cast<float>(step.first));
      add(scale * static_cast<float>(second));
    } else {
      add(block_sums[block]);
    }
  }
}

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(ConvertToWords);
HWY_EXPORT(ConvertToBytes);

void KernelInput::Words::convert_token(const float* x, std::size_t t) {
  HWY_DYNAMIC_DISPATCH(ConvertToWords)(x, t, *this);
}
void KernelInput::Bytes::convert_token(const float* x, std::size_t t) {
  HWY_DYNAMIC_DISPATCH(ConvertToBytes)(x, t, *this);
}

}  // namespace poise
#endif
