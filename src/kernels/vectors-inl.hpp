// Helpers of kernels, once for each kind of processor.
#if defined(POISE_KERNELS_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_VECTORS
#undef POISE_KERNELS_VECTORS
#else
#define POISE_KERNELS_VECTORS
#endif

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

// Returns the last `count` numbers, padded with zeros.
HWY_INLINE auto LoadTail(const float* from, std::size_t count) {
  HWY_ALIGN float buffer[kMaxLanes] = {};
  std::memcpy(buffer, from, sizeof(float) * count);
  return hn::Load(Floats(), buffer);
}

// Prefetches what follows the current four rows, as one run of memory: four rows at a time are too short for the
// hardware prefetcher. Far ahead for the second-level cache, which allows more misses at once than the first, then for
// the first. Addresses after the last row are harmless.
class NextRows {
 public:
  explicit HWY_INLINE NextRows(const std::uint8_t* rows) : NextRows(rows, kToSecondCache, kToFirstCache) {}
  // Of rows that are taken together, not one after the other: what is `ahead` bytes behind them.
  HWY_INLINE NextRows(const std::uint8_t* rows, std::size_t ahead) : NextRows(rows, ahead, 0) {}

  // `taken` bytes of the rows are being read.
  HWY_INLINE void ask(std::size_t taken) {
    for (; asked_ < taken; asked_ += 64) {
      __builtin_prefetch(rows_ + second_ + asked_, 0, 2);
      hwy::Prefetch(rows_ + first_ + asked_);
    }
  }
  // So many bytes more.
  HWY_INLINE void ask_more(std::size_t bytes) { ask(taken_ += bytes); }

 private:
  HWY_INLINE NextRows(const std::uint8_t* rows, std::size_t second, std::size_t first)
      : rows_(rows), second_(second), first_(first), asked_(0), taken_(0) {}

  static constexpr std::size_t kToSecondCache = std::size_t{32} << 10;
  static constexpr std::size_t kToFirstCache = std::size_t{4} << 10;
  const std::uint8_t* rows_;
  std::size_t second_;
  std::size_t first_;
  std::size_t asked_;
  std::size_t taken_;
};

template <typename V>
HWY_INLINE float Sum(V lanes) {
  return hn::GetLane(hn::SumOfLanes(Floats(), lanes));
}

// Four sums: the products of four rows. (The compiler generates implicit constructors without a target processor.)
struct FourSums {
#if HWY_TARGET == HWY_SCALAR
  float lanes[4];

  HWY_INLINE FourSums() : FourSums(0, 0, 0, 0) {}
  HWY_INLINE FourSums(float a, float b, float c, float d) : lanes{a, b, c, d} {}
  // Returns the sums of all lanes of four vectors, in an order that depends only on the vector length.
  template <typename D, typename V = hn::Vec<D>>
  static HWY_INLINE FourSums of(D, V a, V b, V c, V d) {
    return {hn::GetLane(a), hn::GetLane(b), hn::GetLane(c), hn::GetLane(d)};
  }
  template <typename D, typename V = hn::Vec<D>>
  static HWY_INLINE FourSums of(D tag, const V (&rows)[4]) {
    return of(tag, rows[0], rows[1], rows[2], rows[3]);
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
  template <typename D, typename V = hn::Vec<D>>
  static HWY_INLINE FourSums of(D tag, const V (&rows)[4]) {
    return of(tag, rows[0], rows[1], rows[2], rows[3]);
  }
  HWY_INLINE void store(float* to) const { hn::StoreU(lanes, Tag(), to); }
  HWY_INLINE void add(const FourSums& other) { lanes = hn::Add(lanes, other.lanes); }
  HWY_INLINE void add_product(float factor, const FourSums& other) {
    lanes = hn::MulAdd(hn::Set(Tag(), factor), other.lanes, lanes);
  }

  // Adds the blocks of four lanes.
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

  // Only the first `count`, if fewer than four.
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
