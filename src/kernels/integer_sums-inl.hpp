// Exact sums of products of codes and integers, for kernels with integer x.
//
// Codes are read 16 bits at a time: a vector of words holds 2 or 4 codes in each lane, and shifts move one after
// another ("planes") into place as 16-bit numbers.
#if defined(POISE_KERNELS_INTEGER_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_INTEGER_SUMS
#undef POISE_KERNELS_INTEGER_SUMS
#else
#define POISE_KERNELS_INTEGER_SUMS
#endif

#include <algorithm>
#include <cstring>
#include <memory>

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "kernels/halves-inl.hpp"
#include "kernels/product.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// How many codes a word has, and the p-th of each word.
template <bool kSigned>
struct EightBits {
  static constexpr std::size_t kPlanes = 2;
  template <int kPlane, class V>
  static HWY_INLINE V plane(V words) {
    if constexpr (kSigned) {
      if constexpr (kPlane == 0) words = hn::ShiftLeft<8>(words);
      return hn::ShiftRight<8>(words);
    } else {
      const hn::RebindToUnsigned<hn::DFromV<V> > bits;
      if constexpr (kPlane == 0) return hn::And(words, hn::Set(hn::DFromV<V>(), 0xff));
      return hn::BitCast(hn::DFromV<V>(), hn::ShiftRight<8>(hn::BitCast(bits, words)));
    }
  }
};

// Consecutive codes are `kStep` bits apart.
template <bool kSigned, int kStep>
struct FourBits {
  static constexpr std::size_t kPlanes = 16 / kStep;
  template <int kPlane, class V>
  static HWY_INLINE V plane(V words) {
    if constexpr (kSigned) {
      return hn::ShiftRight<12>(hn::ShiftLeft<12 - kPlane * kStep>(words));
    } else {
      return hn::And(hn::ShiftRight<kPlane * kStep>(words), hn::Set(hn::DFromV<V>(), 15));
    }
  }
};

#if HWY_TARGET != HWY_SCALAR

using Bytes = const std::uint8_t*;
using hn::LoadU;
using hn::MulAdd;
using Words = hn::ScalableTag<std::int16_t>;
using Products = hn::RepartitionToWide<Words>;
constexpr std::size_t kMaxWords = hn::MaxLanes(Words());
constexpr std::size_t kBlock = KernelInput::kIntegerBlock;

#undef POISE_HAVE_VNNI
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define POISE_HAVE_VNNI 1
#else
#define POISE_HAVE_VNNI 0
#endif

// Exact sums of products of 16-bit numbers.
template <bool kVnni, class D = Words>
struct ExactSum {
  using Wide = hn::RepartitionToWide<D>;
  using V = hn::Vec<D>;
  hn::Vec<Wide> even;
  hn::Vec<Wide> odd;  // stays zero on most processors

  HWY_INLINE ExactSum() : even(hn::Zero(Wide())), odd(even) {}

  HWY_INLINE void add(V a, V b) {
#if POISE_HAVE_VNNI
    if constexpr (kVnni) {
      // Highway has no name for it before Ice Lake.
      asm("vpdpwssd %2, %1, %0" : "+v"(even.raw) : "v"(a.raw), "v"(b.raw));
      return;
    }
#endif
    even = hn::ReorderWidenMulAccumulate(Wide(), a, b, even, odd);
  }
  HWY_INLINE auto total() const { return hn::Add(even, odd); }
  HWY_INLINE auto floats() const { return hn::ConvertTo(hn::RebindToFloat<Wide>(), total()); }
};

// Four rows; the last one is repeated if there are fewer.
struct FourBytes {
  FourBytes(const StoredRows& matrix, std::size_t row_bytes, std::size_t r, std::size_t last) {
    for (std::size_t i = 0; i < 4; ++i)
      rows[i] = reinterpret_cast<Bytes>(matrix.data) + std::min(r + i, last - 1) * row_bytes;
  }
  Bytes rows[4];
};

// Requires: rows begin on whole bytes.
template <class Unpack>
std::size_t RowBytes(const StoredRows& matrix) {
  return (2 * matrix.columns + Unpack::kPlanes - 1) / Unpack::kPlanes;
}

// The words at `from`, of which `bytes` belong to the row, padded with zeros.
template <class D>
HWY_INLINE hn::Vec<D> LoadWordsTail(D words, Bytes from, std::size_t bytes) {
  HWY_ALIGN std::uint8_t buffer[2 * kMaxWords] = {};
  std::memcpy(buffer, from, bytes);
  return hn::Load(words, reinterpret_cast<const std::int16_t*>(buffer));
}

// The sums of four rows.
template <bool kVnni, class D>
struct FourExactSums {
  ExactSum<kVnni, D> a, b, c, d;

  HWY_INLINE FourExactSums() {}

  template <class V>
  HWY_INLINE void add(V w0, V w1, V w2, V w3, V x) {
    a.add(w0, x);
    b.add(w1, x);
    c.add(w2, x);
    d.add(w3, x);
  }

  // Words whose planes are multiplied with x at `x`, `x + run`, ...
  template <class Unpack, class V>
  HWY_INLINE void add_words(V w0, V w1, V w2, V w3, const std::int16_t* x, std::size_t run) {
    const D words;
    add(Unpack::template plane<0>(w0), Unpack::template plane<0>(w1), Unpack::template plane<0>(w2),
        Unpack::template plane<0>(w3), LoadU(words, x));
    add(Unpack::template plane<1>(w0), Unpack::template plane<1>(w1), Unpack::template plane<1>(w2),
        Unpack::template plane<1>(w3), LoadU(words, x + run));
    if constexpr (Unpack::kPlanes == 4) {
      const std::int16_t* x2 = x + 2 * run;
      add(Unpack::template plane<2>(w0), Unpack::template plane<2>(w1), Unpack::template plane<2>(w2),
          Unpack::template plane<2>(w3), LoadU(words, x2));
      add(Unpack::template plane<3>(w0), Unpack::template plane<3>(w1), Unpack::template plane<3>(w2),
          Unpack::template plane<3>(w3), LoadU(words, x2 + run));
    }
  }

  // `bytes` bytes of four rows, beginning at `begin`.
  template <class Unpack>
  HWY_INLINE void add_bytes(Bytes r0, Bytes r1, Bytes r2, Bytes r3, std::size_t bytes, NextRows& next,
                            std::size_t begin, const std::int16_t* x, std::size_t run) {
    const D words;
    const std::size_t step = 2 * hn::Lanes(words);
    const auto load = [&](Bytes row) HWY_ATTR { return LoadU(words, reinterpret_cast<const std::int16_t*>(row)); };
    std::size_t i = 0;
    for (; i + step <= bytes; i += step) {
      next.ask(4 * (begin + i + step));
      add_words<Unpack>(load(r0 + i), load(r1 + i), load(r2 + i), load(r3 + i), x + i / 2, run);
    }
    if (i == bytes) return;
    const auto tail = [&](Bytes row) HWY_ATTR { return LoadWordsTail(words, row + i, bytes - i); };
    add_words<Unpack>(tail(r0), tail(r1), tail(r2), tail(r3), x + i / 2, run);
  }

  HWY_INLINE FourSums sums() const {
    return FourSums::of(hn::RebindToFloat<hn::RepartitionToWide<D> >(), a.floats(), b.floats(), c.floats(), d.floats());
  }
};

// Converts float16 numbers to float32, padded with zeros to a multiple of a vector.
HWY_INLINE void Widen(const std::byte* halves, std::size_t count, float* out) {
  const hn::Rebind<std::uint16_t, Floats> narrow;
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Store(HalvesToFloats(Floats(), LoadU(narrow, reinterpret_cast<const std::uint16_t*>(halves + 2 * i))), Floats(),
              out + i);
  }
  if (i == count) return;
  HWY_ALIGN std::uint16_t buffer[kMaxLanes] = {};
  std::memcpy(buffer, halves + 2 * i, 2 * (count - i));
  hn::Store(HalvesToFloats(Floats(), hn::Load(narrow, buffer)), Floats(), out + i);
}

// Scales of the groups of some rows, and scale * zero; both [rows, stride]. Each thread keeps the memory.
class GroupScales {
 public:
  static GroupScales& of_thread() {
    thread_local GroupScales scales;
    return scales;
  }

  void take(const StoredRows& matrix, std::size_t first, std::size_t rows, std::size_t stride) {
    const std::size_t groups = matrix.columns / matrix.group_size;
    const std::size_t lanes = hn::Lanes(Floats());
    if (rows * stride > capacity_) {
      capacity_ = rows * stride;
      scales_ = hwy::AllocateAligned<float>(capacity_);
      products_ = hwy::AllocateAligned<float>(capacity_);
    }
    stride_ = stride;
    const std::size_t bytes = 2 * rows * groups;
    for (std::size_t i = bytes; i < 2 * bytes; i += 64) {  // of the next rows
      hwy::Prefetch(matrix.scales + 2 * first * groups + i);
      hwy::Prefetch(matrix.zeros + 2 * first * groups + i);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      Widen(matrix.scales + 2 * (first + r) * groups, groups, scales_.get() + r * stride);
      Widen(matrix.zeros + 2 * (first + r) * groups, groups, products_.get() + r * stride);
      float* products = products_.get() + r * stride;
      for (std::size_t g = 0; g < groups; g += lanes) {
        hn::Store(hn::Mul(hn::Load(Floats(), products + g), hn::Load(Floats(), scales_.get() + r * stride + g)),
                  Floats(), products + g);
      }
      std::fill(products + groups, products + stride, 0.0F);
    }
  }

  const float* scales(std::size_t r) const { return scales_.get() + r * stride_; }

  // The sums minus those of zero points; `sums_of_x` are those of groups.
  HWY_INLINE FourSums without_zeros(FourSums sums, const std::size_t (&rows)[4], const float* sums_of_x) const {
    auto a = hn::Zero(Floats());
    auto b = a, c = a, d = a;
    for (std::size_t g = 0; g < stride_; g += hn::Lanes(Floats())) {
      const auto x = hn::LoadU(Floats(), sums_of_x + g);
      const float* at = products_.get() + g;
      a = MulAdd(hn::Load(Floats(), at + rows[0] * stride_), x, a);
      b = MulAdd(hn::Load(Floats(), at + rows[1] * stride_), x, b);
      c = MulAdd(hn::Load(Floats(), at + rows[2] * stride_), x, c);
      d = MulAdd(hn::Load(Floats(), at + rows[3] * stride_), x, d);
    }
    sums.add_product(-1, FourSums::of(Floats(), a, b, c, d));
    return sums;
  }

 private:
  std::size_t capacity_ = 0;
  std::size_t stride_ = 0;
  hwy::AlignedFreeUniquePtr<float[]> scales_;
  hwy::AlignedFreeUniquePtr<float[]> products_;
};

// Sums of four rows in float32, each group of codes times its scale.
template <class D>
struct FourGroupSums {
  using Tag = hn::RebindToFloat<hn::RepartitionToWide<D> >;
  hn::Vec<Tag> a, b, c, d;

  HWY_INLINE FourGroupSums() : a(hn::Zero(Tag())), b(a), c(a), d(a) {}

  template <bool kVnni>
  HWY_INLINE void add(const FourExactSums<kVnni, D>& group, const float* s0, const float* s1, const float* s2,
                      const float* s3) {
    a = MulAdd(group.a.floats(), hn::Set(Tag(), *s0), a);
    b = MulAdd(group.b.floats(), hn::Set(Tag(), *s1), b);
    c = MulAdd(group.c.floats(), hn::Set(Tag(), *s2), c);
    d = MulAdd(group.d.floats(), hn::Set(Tag(), *s3), d);
  }
  HWY_INLINE FourSums sums() const { return FourSums::of(Tag(), a, b, c, d); }
};

// The place of each of four rows when only `rows` of them are kept; later ones get the last one's place.
struct FourPlaces {
  explicit FourPlaces(std::size_t rows) {
    for (std::size_t i = 0; i < 4; ++i) at[i] = std::min(i, rows - 1);
  }
  std::size_t at[4];
};

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
