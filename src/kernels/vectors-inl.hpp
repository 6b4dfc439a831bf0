// Defines functions that most kernels use. Highway compiles them for each kind of processor.
#if defined(POISE_KERNELS_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_VECTORS
#undef POISE_KERNELS_VECTORS
#else
#define POISE_KERNELS_VECTORS
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
constexpr std::size_t kMaxLanes = hn::MaxLanes(Floats());

HWY_INLINE auto Load(const float* from) { return hn::LoadU(Floats(), from); }

// Returns the last `count` numbers of an array, padded with zeros to a vector.
HWY_INLINE auto LoadTail(const float* from, std::size_t count) {
  HWY_ALIGN float buffer[kMaxLanes] = {};
  std::memcpy(buffer, from, sizeof(float) * count);
  return hn::Load(Floats(), buffer);
}

// Prefetches the bytes after the current four rows as one run of memory, because four rows at a time are too short for
// the hardware prefetcher. It prefetches far ahead into the second-level cache, which allows more misses at once than
// the first, and later into the first. Addresses after the last row do no harm.
class NextRows {
 public:
  explicit HWY_INLINE NextRows(const std::uint8_t* rows) : NextRows(rows, kToSecondCache, kToFirstCache) {}
  // Prefetches the bytes `ahead` bytes after those that are read, for callers that read several rows at the same time.
  HWY_INLINE NextRows(const std::uint8_t* rows, std::size_t ahead) : NextRows(rows, ahead, 0) {}

  // Prefetches the bytes that the caller reads after the first `read` bytes of these rows; `read` grows from call to
  // call.
  HWY_INLINE void prefetch(std::size_t read) {
    for (; prefetched_ < read; prefetched_ += 64) {
      __builtin_prefetch(rows_ + second_ + prefetched_, 0, 2);
      hwy::Prefetch(rows_ + first_ + prefetched_);
    }
  }
  // Prefetches after the caller has read `bytes` more bytes.
  HWY_INLINE void prefetch_more(std::size_t bytes) { prefetch(read_ += bytes); }

 private:
  HWY_INLINE NextRows(const std::uint8_t* rows, std::size_t second, std::size_t first)
      : rows_(rows), second_(second), first_(first), prefetched_(0), read_(0) {}

  static constexpr std::size_t kToSecondCache = std::size_t{32} << 10;
  static constexpr std::size_t kToFirstCache = std::size_t{4} << 10;
  const std::uint8_t* rows_;
  std::size_t second_;
  std::size_t first_;
  std::size_t prefetched_;
  std::size_t read_;
};

// Converts float16 numbers, given by their bits, to float32. On processors without an instruction for it, does not use
// PromoteTo() of Highway 1.0.3, which would make infinities finite.
template <class D, class V>
HWY_INLINE hn::Vec<D> ConvertHalves(D floats, V halves) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(floats, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
#else
  const hn::RebindToUnsigned<D> words;
  const hn::RebindToSigned<D> integers;
  const auto wide = hn::PromoteTo(words, halves);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(words, 0x7fff)));
  const auto finite = hn::BitCast(words, hn::Mul(hn::BitCast(floats, magnitude), hn::Set(floats, 0x1p112F)));
  const auto above = hn::RebindMask(words, hn::Gt(hn::BitCast(integers, magnitude), hn::Set(integers, 0x0f7fffff)));
  const auto bits = hn::IfThenElse(above, hn::Or(magnitude, hn::Set(words, 0x7f800000)), finite);
  return hn::BitCast(floats, hn::Or(bits, hn::ShiftLeft<16>(hn::And(wide, hn::Set(words, 0x8000)))));
#endif
}

// Rounds float32 numbers, given by their bits, to bfloat16: returns the upper half of each word, rounded to the
// nearest, ties to even. Requires: a NaN has a fraction bit in its upper half.
template <class D, class V>
HWY_INLINE V RoundToUpperHalf(D words, V word) {
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(words, 1));
  return hn::ShiftRight<16>(hn::Add(word, hn::Add(hn::Set(words, 0x7fff), odd)));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Rounds two vectors of float32 numbers to bfloat16. Numbers below the normal range become zero. (Highway does not
// offer the instruction.) Requires: has_bfloat16().
HWY_INLINE hn::Vec512<std::uint16_t> RoundTwo(hn::Vec512<float> first, hn::Vec512<float> second) {
  hn::Vec512<std::uint16_t> halves;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(halves.raw) : "v"(first.raw), "v"(second.raw));
  return halves;
}
#endif

constexpr std::size_t kFewTogether = 4;  // tokens by which a loaded weight is multiplied

// Returns how many of four rows are multiplied at once, so that their sums for `tokens` tokens stay in registers.
constexpr std::size_t ChooseRowsTogether(std::size_t tokens) {
#if HWY_TARGET <= HWY_AVX3
  constexpr std::size_t kMostSums = 16;  // half of the 32 registers
#else
  constexpr std::size_t kMostSums = 8;  // half of the 16 registers
#endif
  return 4 * tokens > kMostSums ? kMostSums / tokens : 4;
}

// Calls visit(count, t) for tokens [t, t + count), until all `tokens` have been visited: kMost at a time, then the rest
// in powers of two. The count is a compile-time constant, so loops over it unroll.
template <std::size_t kMost, class Visit>
HWY_INLINE void VisitTokens(std::size_t tokens, const Visit& visit, std::size_t t = 0) {
  for (; t + kMost <= tokens; t += kMost) visit(std::integral_constant<std::size_t, kMost>(), t);
  if constexpr (kMost > 1) VisitTokens<kMost / 2>(tokens, visit, t);
}

template <typename V>
HWY_INLINE float Sum(V lanes) {
  return hn::GetLane(hn::SumOfLanes(Floats(), lanes));
}

#if !HWY_HAVE_SCALABLE  // a struct cannot hold vectors of unknown length
// Holds four sums, one for each of four rows. The constructors are written out, because the compiler would generate
// them without the target's instructions.
struct FourSums {
#if HWY_TARGET == HWY_SCALAR
  float lanes[4];

  HWY_INLINE FourSums() : FourSums(0, 0, 0, 0) {}
  HWY_INLINE FourSums(float a, float b, float c, float d) : lanes{a, b, c, d} {}
  // Returns the sums of all lanes of four vectors, in an order that depends only on the vector length.
  template <typename D, typename V = hn::Vec<D>>
  static HWY_INLINE FourSums sum_lanes(D, V a, V b, V c, V d) {
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
  static HWY_INLINE FourSums sum_lanes(D tag, V a, V b, V c, V d) {
    const hn::Repartition<double, D> pairs;
    const auto ab = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b)));
    const auto cd = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(tag, c, d), hn::InterleaveUpper(tag, c, d)));
    const auto low = hn::BitCast(tag, hn::InterleaveLower(pairs, ab, cd));
    const auto high = hn::BitCast(tag, hn::InterleaveUpper(pairs, ab, cd));
    return FourSums(add_blocks(tag, hn::Add(low, high)));
  }
  HWY_INLINE void store(float* to) const { hn::StoreU(lanes, Tag(), to); }
  HWY_INLINE void add(const FourSums& other) { lanes = hn::Add(lanes, other.lanes); }
  HWY_INLINE void add_product(float factor, const FourSums& other) {
    lanes = hn::MulAdd(hn::Set(Tag(), factor), other.lanes, lanes);
  }

  // Adds the blocks of four lanes.
  template <typename D>
  static HWY_INLINE hn::Vec<Tag> add_blocks(D, hn::Vec<D> v) {
    if constexpr (hn::MaxLanes(D()) == 4) {
      return v;
    } else {
      const hn::Half<D> half;
      return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  }
#endif
  template <typename D, typename V = hn::Vec<D>>
  static HWY_INLINE FourSums sum_lanes(D tag, const V (&rows)[4]) {
    return sum_lanes(tag, rows[0], rows[1], rows[2], rows[3]);
  }

  // Stores the first `count` sums, or all four if `count` is larger.
  HWY_INLINE void store(float* to, std::size_t count) const {
    if (count >= 4) return store(to);
    float buffer[4];
    store(buffer);
    std::memcpy(to, buffer, sizeof(float) * count);
  }
};
#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
