// Computes attention over cached keys and values, for each type in which a cache stores them.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cache_type.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cached_attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vectors-inl.hpp"
#include "kernels/weighted_rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

using HalfCodes = hn::Rebind<std::uint16_t, Floats>;
using ByteCodes = hn::Rebind<std::int8_t, Floats>;

HWY_INLINE auto LoadCodes(const std::uint16_t* from) { return ConvertHalves(Floats(), hn::LoadU(HalfCodes(), from)); }
HWY_INLINE auto LoadCodes(const std::int8_t* from) {
  const hn::RebindToSigned<Floats> integers;
  return hn::ConvertTo(Floats(), hn::PromoteTo(integers, hn::LoadU(ByteCodes(), from)));
}
// Returns the last `count` codes, padded with zeros.
template <typename Code>
HWY_INLINE auto LoadCodesTail(const Code* from, std::size_t count) {
  HWY_ALIGN Code buffer[kMaxLanes] = {};
  std::memcpy(buffer, from, sizeof(Code) * count);
  return LoadCodes(buffer);
}

// Each of these structs reads the blocks of one cache type. Keys::load() returns element e of the keys at positions
// `at`, at + 1, ... Elements [e, find_group_end(e)) share a scale, and Keys::add_scaled() adds the sum of their
// products, times the scale, to `sum`. make_values() returns a loader for AddWeightedRows().
struct F32Blocks {
  struct Keys {
    const float* data;

    HWY_INLINE Keys(const std::byte* block, std::size_t) : data(reinterpret_cast<const float*>(block)) {}
    HWY_INLINE auto load(std::size_t e, std::size_t at) const { return Load(data + e * kBlockPositions + at); }
    static std::size_t find_group_end(std::size_t, std::size_t size) { return size; }
    // All elements are one group without scales, so `products` is the whole sum.
    template <typename V>
    HWY_INLINE V add_scaled(std::size_t, std::size_t, V products, V) const {
      return products;
    }
  };
  static FloatValues make_values(const std::byte* block, std::size_t first, std::size_t size) {
    return {reinterpret_cast<const float*>(block) + first * size, size};
  }
};

struct F16Blocks {
  struct Keys {
    const std::uint16_t* data;

    HWY_INLINE Keys(const std::byte* block, std::size_t) : data(reinterpret_cast<const std::uint16_t*>(block)) {}
    HWY_INLINE auto load(std::size_t e, std::size_t at) const { return LoadCodes(data + e * kBlockPositions + at); }
    static std::size_t find_group_end(std::size_t, std::size_t size) { return size; }
    // All elements are one group without scales, so `products` is the whole sum.
    template <typename V>
    HWY_INLINE V add_scaled(std::size_t, std::size_t, V products, V) const {
      return products;
    }
  };
  struct Values {
    const std::uint16_t* data;
    std::size_t size;

    HWY_INLINE auto load(std::size_t i, std::size_t at) const { return LoadCodes(data + i * size + at); }
    HWY_INLINE auto load_tail(std::size_t i, std::size_t at, std::size_t count) const {
      return LoadCodesTail(data + i * size + at, count);
    }
  };
  static Values make_values(const std::byte* block, std::size_t first, std::size_t size) {
    return {reinterpret_cast<const std::uint16_t*>(block) + first * size, size};
  }
};

struct Q8Blocks {
  static std::size_t count_groups(std::size_t size) { return (size + kCodeGroup - 1) / kCodeGroup; }
  static const float* find_scales(const std::byte* block, std::size_t size) {
    return reinterpret_cast<const float*>(block + kBlockPositions * size);
  }

  struct Keys {
    const std::int8_t* codes;
    const float* scales;

    HWY_INLINE Keys(const std::byte* block, std::size_t size)
        : codes(reinterpret_cast<const std::int8_t*>(block)), scales(Q8Blocks::find_scales(block, size)) {}
    HWY_INLINE auto load(std::size_t e, std::size_t at) const { return LoadCodes(codes + e * kBlockPositions + at); }
    static std::size_t find_group_end(std::size_t e, std::size_t size) { return std::min(size, e + kCodeGroup); }
    // Returns `sum` plus the products of a group times its scales.
    template <typename V>
    HWY_INLINE V add_scaled(std::size_t e, std::size_t at, V products, V sum) const {
      return hn::MulAdd(products, Load(scales + e / kCodeGroup * kBlockPositions + at), sum);
    }
  };
  struct Values {
    const std::int8_t* codes;
    const float* scales;
    std::size_t size;
    std::size_t groups;

    // A vector lies within one group.
    static_assert(kCodeGroup % kMaxLanes == 0);
    HWY_INLINE auto load_scale(std::size_t i, std::size_t at) const {
      return hn::Set(Floats(), scales[i * groups + at / kCodeGroup]);
    }
    HWY_INLINE auto load(std::size_t i, std::size_t at) const {
      return hn::Mul(LoadCodes(codes + i * size + at), load_scale(i, at));
    }
    HWY_INLINE auto load_tail(std::size_t i, std::size_t at, std::size_t count) const {
      return hn::Mul(LoadCodesTail(codes + i * size + at, count), load_scale(i, at));
    }
  };
  static Values make_values(const std::byte* block, std::size_t first, std::size_t size) {
    return {reinterpret_cast<const std::int8_t*>(block) + first * size,
            find_scales(block, size) + first * count_groups(size), size, count_groups(size)};
  }
};

// ScoreBlock() multiplies this number of vectors of keys by kCount queries at a time. At least four independent sums
// hide the latency of MulAdd().
template <std::size_t kCount>
constexpr std::size_t kKeyVectors = kCount == 1 ? 4 : 2;

// Returns how often ScoreBlock() calls ahead.fetch().
template <std::size_t kCount>
HWY_INLINE std::size_t CountScoreSteps(std::size_t size) {
  return size * kBlockPositions / (kKeyVectors<kCount> * hn::Lanes(Floats()));
}

// Computes out [kCount, kBlockPositions] = scale * (queries times the keys of a block).
template <std::size_t kCount, typename Keys>
HWY_INLINE void ScoreBlock(const FloatRows& queries, std::size_t size, const Keys& keys, float scale,
                           const BlockAhead& ahead, float* out) {
  constexpr std::size_t kVectors = kKeyVectors<kCount>;
  static_assert(kBlockPositions % (4 * kMaxLanes) == 0);
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t at = 0; at < kBlockPositions; at += kVectors * lanes) {
    hn::Vec<Floats> sums[kCount][kVectors];
    for (std::size_t q = 0; q < kCount; ++q) {
      for (std::size_t v = 0; v < kVectors; ++v) sums[q][v] = hn::Zero(Floats());
    }
    for (std::size_t first = 0; first < size;) {
      const std::size_t end = keys.find_group_end(first, size);
      hn::Vec<Floats> products[kCount][kVectors];
      for (std::size_t q = 0; q < kCount; ++q) {
        for (std::size_t v = 0; v < kVectors; ++v) products[q][v] = hn::Zero(Floats());
      }
      for (std::size_t e = first; e < end; ++e) {
        hn::Vec<Floats> key[kVectors];
        for (std::size_t v = 0; v < kVectors; ++v) key[v] = keys.load(e, at + v * lanes);
        ahead.fetch(at / (kVectors * lanes) * size + e);
        HWY_UNROLL(8)
        for (std::size_t q = 0; q < kCount; ++q) {
          const auto x = hn::Set(Floats(), queries.data[q * queries.stride + e]);
          for (std::size_t v = 0; v < kVectors; ++v) products[q][v] = hn::MulAdd(x, key[v], products[q][v]);
        }
      }
      for (std::size_t q = 0; q < kCount; ++q) {
        for (std::size_t v = 0; v < kVectors; ++v)
          sums[q][v] = keys.add_scaled(first, at + v * lanes, products[q][v], sums[q][v]);
      }
      first = end;
    }
    const auto factor = hn::Set(Floats(), scale);
    for (std::size_t q = 0; q < kCount; ++q) {
      for (std::size_t v = 0; v < kVectors; ++v)
        hn::StoreU(hn::Mul(sums[q][v], factor), Floats(), out + q * kBlockPositions + at + v * lanes);
    }
  }
}

template <typename Blocks>
void ComputeScores(const FloatRows& queries, const CachedRun& run, std::size_t size, float scale, float* scores,
                   std::size_t stride) {
  const typename Blocks::Keys keys(run.block, size);
  VisitQueries(queries.count, [&](std::size_t q, auto together) HWY_ATTR {
    HWY_ALIGN float all[kQueriesTogether * kBlockPositions];
    const std::size_t steps = CountScoreSteps<together()>(size);
    const BlockAhead ahead = q == 0 ? BlockAhead(run.next, run.next_bytes, steps) : BlockAhead();
    ScoreBlock<together()>({queries.data + q * queries.stride, queries.stride, together()}, size, keys, scale, ahead,
                           all);
    for (std::size_t i = 0; i < together(); ++i)
      std::copy_n(all + i * kBlockPositions + run.first, run.count, scores + (q + i) * stride);
  });
}

template <typename Blocks>
void AddValues(const FloatRows& weights, const CachedRun& run, std::size_t size, float* out) {
  AddWeightedRows(weights, Blocks::make_values(run.block, run.first, size), run.count, size,
                  BlockAhead(run.next, run.next_bytes, run.count), out);
}

// Checks whether all numbers are finite. 0 * x is NaN if x is infinite or NaN, and 0 otherwise.
struct Finite {
  hn::Vec<Floats> products;

  HWY_INLINE Finite() : products(hn::Zero(Floats())) {}
  template <typename V>
  HWY_INLINE V operator()(V numbers) {
    products = hn::MulAdd(hn::Zero(Floats()), numbers, products);
    return numbers;
  }
  // Returns 0 if all numbers were finite, and NaN otherwise.
  HWY_INLINE float sum() const { return Sum(products); }
};

template <typename Blocks>
bool DecodeKeys(const std::byte* block, std::size_t size, float* out) {
  const typename Blocks::Keys keys(block, size);
  Finite seen;
  for (std::size_t e = 0; e < size; ++e) {
    for (std::size_t at = 0; at < kBlockPositions; at += hn::Lanes(Floats()))
      hn::StoreU(seen(keys.add_scaled(e, at, keys.load(e, at), hn::Zero(Floats()))), Floats(),
                 out + e * kBlockPositions + at);
  }
  return seen.sum() == 0;
}

template <typename Blocks>
bool DecodeValues(const std::byte* block, std::size_t size, float* out) {
  const auto values = Blocks::make_values(block, 0, size);
  const std::size_t lanes = hn::Lanes(Floats());
  Finite seen;
  for (std::size_t i = 0; i < kBlockPositions; ++i, out += size) {
    std::size_t at = 0;
    for (; at + lanes <= size; at += lanes) hn::StoreU(seen(values.load(i, at)), Floats(), out + at);
    if (at == size) continue;
    HWY_ALIGN float rest[kMaxLanes];
    hn::Store(seen(values.load_tail(i, at, size - at)), Floats(), rest);
    std::memcpy(out + at, rest, sizeof(float) * (size - at));
  }
  return seen.sum() == 0;
}

template <typename Blocks>
const CacheKernels& GetKernelsFor() {
  static constexpr CacheKernels kKernels = {.compute_scores = &ComputeScores<Blocks>,
                                            .add_values = &AddValues<Blocks>,
                                            .decode_keys = &DecodeKeys<Blocks>,
                                            .decode_values = &DecodeValues<Blocks>};
  return kKernels;
}

const CacheKernels& GetF32Cache() { return GetKernelsFor<F32Blocks>(); }
const CacheKernels& GetF16Cache() { return GetKernelsFor<F16Blocks>(); }
const CacheKernels& GetQ8Cache() { return GetKernelsFor<Q8Blocks>(); }

// Encodes a group of kCodeGroup numbers. Callers pad a shorter one with zeros.
HWY_INLINE void EncodeGroup(const float* numbers, std::int8_t* codes, float* scale) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto largest = hn::Zero(Floats());
  Finite seen;
  for (std::size_t i = 0; i < kCodeGroup; i += lanes) largest = hn::Max(largest, hn::Abs(seen(Load(numbers + i))));
  *scale = hn::GetLane(hn::MaxOfLanes(Floats(), largest)) / 127.0F + seen.sum();
  if (!(*scale > 0)) {  // all numbers are 0 or so small that the scale is 0, or one is not finite
    std::memset(codes, 0, kCodeGroup);
    return;
  }
  const auto step = hn::Set(Floats(), *scale);
  const auto limit = hn::Set(Floats(), 127.0F);
  for (std::size_t i = 0; i < kCodeGroup; i += lanes) {
    const auto code = hn::Min(hn::Max(hn::Div(Load(numbers + i), step), hn::Neg(limit)), limit);
    hn::StoreU(hn::DemoteTo(ByteCodes(), hn::NearestInt(code)), ByteCodes(), codes + i);
  }
}

void EncodeQ8(const float* numbers, std::size_t size, std::int8_t* codes, float* scales) {
  std::size_t first = 0;
  for (; first + kCodeGroup <= size; first += kCodeGroup) EncodeGroup(numbers + first, codes + first, scales++);
  if (first == size) return;
  float padded[kCodeGroup] = {};
  std::int8_t all[kCodeGroup];
  std::memcpy(padded, numbers + first, sizeof(float) * (size - first));
  EncodeGroup(padded, all, scales);
  std::memcpy(codes + first, all, size - first);
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(GetF32Cache);
HWY_EXPORT(GetF16Cache);
HWY_EXPORT(GetQ8Cache);
HWY_EXPORT(EncodeQ8);

const CacheKernels& get_f32_cache_kernels() { return HWY_DYNAMIC_DISPATCH(GetF32Cache)(); }
const CacheKernels& get_f16_cache_kernels() { return HWY_DYNAMIC_DISPATCH(GetF16Cache)(); }
const CacheKernels& get_q8_cache_kernels() { return HWY_DYNAMIC_DISPATCH(GetQ8Cache)(); }

void encode_q8(const float* numbers, std::size_t size, std::int8_t* codes, float* scales) {
  HWY_DYNAMIC_DISPATCH(EncodeQ8)(numbers, size, codes, scales);
}

}  // namespace poise
#endif
