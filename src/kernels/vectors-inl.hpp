// What the kernels' files share, once for each kind of processor.
#if defined(POISE_KERNELS_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_VECTORS
#undef POISE_KERNELS_VECTORS
#else
#define POISE_KERNELS_VECTORS
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
constexpr std::size_t kMaxLanes = hn::MaxLanes(Floats());

HWY_INLINE auto Load(const float* from) { return hn::LoadU(Floats(), from); }

// The last `count` numbers, filled up with zeros.
HWY_INLINE auto LoadTail(const float* from, std::size_t count) {
  HWY_ALIGN float buffer[kMaxLanes] = {};
  std::memcpy(buffer, from, sizeof(float) * count);
  return hn::Load(Floats(), buffer);
}

// How many bytes ahead of a row to ask memory for while it is multiplied: some fours of rows, for memory takes its time.
template <std::size_t kLeast = std::size_t{8} << 10>
HWY_INLINE std::size_t BytesAhead(std::size_t row_bytes) {
  const std::size_t four = std::max<std::size_t>(1, 4 * row_bytes);
  return (kLeast + four - 1) / four * four;
}

// Four rows at a time are too short a run of memory for the processor to see where it goes on: asks for what comes `ahead` bytes
// after each, the next rows. Addresses after the last row do no harm.
HWY_INLINE void PrefetchAhead(const std::uint8_t* row0, const std::uint8_t* row1, const std::uint8_t* row2, const std::uint8_t* row3, std::size_t ahead) {
  hwy::Prefetch(row0 + ahead);
  hwy::Prefetch(row1 + ahead);
  hwy::Prefetch(row2 + ahead);
  hwy::Prefetch(row3 + ahead);
}

template <typename V>
HWY_INLINE float Sum(V lanes) {
  return hn::GetLane(hn::SumOfLanes(Floats(), lanes));
}

// Four sums side by side: what products of four rows come to.
// (Constructors that the compiler makes are made for no processor in particular.)
struct FourSums {
#if HWY_TARGET == HWY_SCALAR
  float lanes[4];

  HWY_INLINE FourSums() : FourSums(0, 0, 0, 0) {}
  HWY_INLINE FourSums(float a, float b, float c, float d) : lanes{a, b, c, d} {}
  // The sums of all lanes of four vectors, in an order that depends on the length of vectors only.
  template <typename D, typename V = hn::Vec<D>>
  static HWY_INLINE FourSums of(D, V a, V b, V c, V d) {
    return {hn::GetLane(a), hn::GetLane(b), hn::GetLane(c), hn::GetLane(d)};
  }
  HWY_INLINE void store(float* to) const { std::memcpy(to, lanes, sizeof lanes); }
  HWY_INLINE void add(const FourSums& other) {
    for (int i = 0; i < 4; ++i) lanes[i] += other.lanes[i];
  }
#else
  using Tag = hn::FixedTag<float, 4>;
  hn::Vec<Tag> lanes;

  HWY_INLINE FourSums() : lanes(hn::Zero(Tag())) {}
  explicit HWY_INLINE FourSums(hn::Vec<Tag> sums) : lanes(sums) {}
  template <typename D, typename V = hn::Vec<D>>
  static HWY_INLINE FourSums of(D tag, V a, V b, V c, V d) {
    const hn::Repartition<double, D> pairs;
    const auto ab = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b)));
    const auto cd = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(tag, c, d), hn::InterleaveUpper(tag, c, d)));
    const auto low = hn::BitCast(tag, hn::InterleaveLower(pairs, ab, cd));
    const auto high = hn::BitCast(tag, hn::InterleaveUpper(pairs, ab, cd));
    return FourSums(sum_of_blocks(tag, hn::Add(low, high)));
  }
  HWY_INLINE void store(float* to) const { hn::StoreU(lanes, Tag(), to); }
  HWY_INLINE void add(const FourSums& other) { lanes = hn::Add(lanes, other.lanes); }
  HWY_INLINE void add_product(float factor, const FourSums& other) { lanes = hn::MulAdd(hn::Set(Tag(), factor), other.lanes, lanes); }

  // Adds up the blocks of four lanes.
  template <typename D>
  static HWY_INLINE hn::Vec<Tag> sum_of_blocks(D, hn::Vec<D> v) {
    if constexpr (hn::MaxLanes(D()) == 4) {
      return v;
    } else {
      const hn::Half<D> half;
      return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  }
#endif

  // The first `count` only, if that is less than four.
  HWY_INLINE void store(float* to, std::size_t count) const {
    if (count >= 4) return store(to);
    float buffer[4];
    store(buffer);
    std::memcpy(to, buffer, sizeof(float) * count);
  }
};

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
