// Computes exact sums of products of codes and integers, for kernels with integer x.
//
// Codes are read 16 bits at a time: each lane of a vector is a word with 2 or 4 codes. Plane p of such a vector is the
// p-th code of each word; shifts extract it as 16-bit numbers.
#if defined(POISE_KERNELS_INTEGER_SUMS) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_INTEGER_SUMS
#undef POISE_KERNELS_INTEGER_SUMS
#else
#define POISE_KERNELS_INTEGER_SUMS
#endif

#include <algorithm>
#include <cstring>

#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include "kernels/product.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Describes words of two codes of eight bits; extract_plane() extracts code kPlane of each word.
template <bool kSigned>
struct EightBits {
  static constexpr std::size_t kPlanes = 2;
  template <int kPlane, class V>
  static HWY_INLINE V extract_plane(V words) {
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

// Describes words of codes of four bits. The codes of a word begin kStep bits apart.
template <bool kSigned, int kStep>
struct FourBits {
  static constexpr std::size_t kPlanes = 16 / kStep;
  template <int kPlane, class V>
  static HWY_INLINE V extract_plane(V words) {
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

// Sums products of 16-bit numbers exactly, as integers of 32 bits in each lane. Requires: these hold the sums.
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
      // Highway does not use this instruction on all processors that have it.
      asm("vpdpwssd %2, %1, %0" : "+v"(even.raw) : "v"(a.raw), "v"(b.raw));
      return;
    }
#endif
    even = hn::ReorderWidenMulAccumulate(Wide(), a, b, even, odd);
  }
  HWY_INLINE auto total() const { return hn::Add(even, odd); }
  HWY_INLINE auto convert_total() const { return hn::ConvertTo(hn::RebindToFloat<Wide>(), total()); }
};

// Refers to four rows. If there are fewer, repeats the last one.
struct FourBytes {
  FourBytes(const StoredRows& matrix, std::size_t row_bytes, std::size_t r, std::size_t last) {
    for (std::size_t i = 0; i < 4; ++i)
      rows[i] = reinterpret_cast<Bytes>(matrix.data) + std::min(r + i, last - 1) * row_bytes;
  }
  Bytes rows[4];
};

// Requires: each row begins with a whole byte.
template <class Unpack>
std::size_t CountRowBytes(const StoredRows& matrix) {
  return (2 * matrix.columns + Unpack::kPlanes - 1) / Unpack::kPlanes;
}

// Returns the words in `bytes` bytes at `from`, padded with zeros.
template <class D>
HWY_INLINE hn::Vec<D> LoadWordsTail(D words, Bytes from, std::size_t bytes) {
  HWY_ALIGN std::uint8_t buffer[2 * kMaxWords] = {};
  std::memcpy(buffer, from, bytes);
  return hn::Load(words, reinterpret_cast<const std::int16_t*>(buffer));
}

// Refers to the integer x of some tokens, in planes. Planes are `run` integers apart, and tokens are `stride` integers
// apart.
struct PlanesOfX {
  const std::int16_t* x;
  std::size_t run;
  std::size_t stride;
};

// Holds exact sums of kRows rows for kTokens tokens.
template <bool kVnni, class D, std::size_t kRows, std::size_t kTokens>
struct ExactSums {
  ExactSum<kVnni, D> of[kTokens][kRows];

  HWY_INLINE ExactSums() {}

  // Adds the products of x and plane kPlane of `words`, which are the words of each row from the i-th on.
  template <class Unpack, int kPlane>
  HWY_INLINE void add_plane(const hn::Vec<D> (&words)[kRows], const PlanesOfX& in, std::size_t i) {
    hn::Vec<D> codes[kRows];
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) codes[r] = Unpack::template extract_plane<kPlane>(words[r]);
    HWY_UNROLL(4)
    for (std::size_t t = 0; t < kTokens; ++t) {
      const auto x = LoadU(D(), in.x + t * in.stride + kPlane * in.run + i);
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < kRows; ++r) of[t][r].add(codes[r], x);
    }
  }
  template <class Unpack>
  HWY_INLINE void add_words(const hn::Vec<D> (&words)[kRows], const PlanesOfX& in, std::size_t i) {
    add_plane<Unpack, 0>(words, in, i);
    add_plane<Unpack, 1>(words, in, i);
    if constexpr (Unpack::kPlanes == 4) {
      add_plane<Unpack, 2>(words, in, i);
      add_plane<Unpack, 3>(words, in, i);
    }
  }

  // Adds the products of bytes [begin, begin + bytes) of each row and x. in.x begins with the x of byte `begin`.
  template <class Unpack>
  HWY_INLINE void add_bytes(const Bytes* rows, std::size_t bytes, NextRows& next, std::size_t begin,
                            const PlanesOfX& in) {
    const D tag;
    const std::size_t step = 2 * hn::Lanes(tag);
    hn::Vec<D> words[kRows];
    std::size_t i = 0;
    for (; i + step <= bytes; i += step) {
      next.prefetch(4 * (begin + i + step));
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < kRows; ++r)
        words[r] = LoadU(tag, reinterpret_cast<const std::int16_t*>(rows[r] + begin + i));
      add_words<Unpack>(words, in, i / 2);
    }
    if (i == bytes) return;
    for (std::size_t r = 0; r < kRows; ++r) words[r] = LoadWordsTail(tag, rows[r] + begin + i, bytes - i);
    add_words<Unpack>(words, in, i / 2);
  }
};

// Converts float16 numbers to float32. Pads the last vector with zeros. Requires: `out` is aligned for vectors, and has
// room for whole vectors.
HWY_INLINE void ConvertHalfArray(const std::byte* halves, std::size_t count, float* out) {
  const hn::Rebind<std::uint16_t, Floats> narrow;
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Store(ConvertHalves(Floats(), LoadU(narrow, reinterpret_cast<const std::uint16_t*>(halves + 2 * i))), Floats(),
              out + i);
  }
  if (i == count) return;
  HWY_ALIGN std::uint16_t buffer[kMaxLanes] = {};
  std::memcpy(buffer, halves + 2 * i, 2 * (count - i));
  hn::Store(ConvertHalves(Floats(), hn::Load(narrow, buffer)), Floats(), out + i);
}

// Holds the scale, and scale * zero point, of each group of some rows; both arrays are [rows, stride]. Each thread has
// one object, and reuses its memory.
class GroupScales {
 public:
  static GroupScales& get_of_thread() {
    thread_local GroupScales scales;
    return scales;
  }

  void load(const StoredRows& matrix, std::size_t first, std::size_t rows, std::size_t stride) {
    const std::size_t groups = matrix.columns / matrix.group_size;
    const std::size_t lanes = hn::Lanes(Floats());
    if (rows * stride > capacity_) {
      capacity_ = rows * stride;
      scales_ = hwy::AllocateAligned<float>(capacity_);
      products_ = hwy::AllocateAligned<float>(capacity_);
    }
    stride_ = stride;
    const std::size_t bytes = 2 * rows * groups;
    for (std::size_t i = bytes; i < 2 * bytes; i += 64) {  // prefetches the factors of the next rows
      hwy::Prefetch(matrix.scales + 2 * first * groups + i);
      hwy::Prefetch(matrix.zeros + 2 * first * groups + i);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      ConvertHalfArray(matrix.scales + 2 * (first + r) * groups, groups, scales_.get() + r * stride);
      ConvertHalfArray(matrix.zeros + 2 * (first + r) * groups, groups, products_.get() + r * stride);
      float* products = products_.get() + r * stride;
      for (std::size_t g = 0; g < groups; g += lanes) {
        hn::Store(hn::Mul(hn::Load(Floats(), products + g), hn::Load(Floats(), scales_.get() + r * stride + g)),
                  Floats(), products + g);
      }
      std::fill(products + groups, products + stride, 0.0F);
    }
  }

  const float* get_scales(std::size_t r) const { return scales_.get() + r * stride_; }

  // Returns the sums of four rows minus the share of the zero points: the sum over groups of scale * zero point * (sum
  // of x in the group). `sums_of_x` has the sums of x. `rows` has the places of the rows in this object.
  HWY_INLINE FourSums subtract_zeros(FourSums sums, const std::size_t (&rows)[4], const float* sums_of_x) const {
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
    sums.add_product(-1, FourSums::sum_lanes(Floats(), a, b, c, d));
    return sums;
  }

 private:
  std::size_t capacity_ = 0;
  std::size_t stride_ = 0;
  hwy::AlignedFreeUniquePtr<float[]> scales_;
  hwy::AlignedFreeUniquePtr<float[]> products_;
};

#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
