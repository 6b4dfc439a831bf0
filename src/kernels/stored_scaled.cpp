// Multiplies by weights that are stored as codes or small floating-point numbers with float32 scales. A scale belongs
// to a group of columns of some rows, or to one column of some rows.
#include <algorithm>
#include <cstring>

#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stored_scaled.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/rows-inl.hpp"
#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Looks up numbers in the matrix's table. A byte has two indices into the table.
struct OfCodebook {
  explicit OfCodebook(const StoredRows& matrix) { std::memcpy(table, matrix.table, sizeof table); }
  static std::size_t count_bytes(std::size_t count) { return count / 2; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::RebindToSigned<Floats> integers;
    const auto places = hn::PromoteTo(integers, LoadNibbles(row, i));
    if constexpr (hn::MaxLanes(Floats()) == 16) {
      return hn::TableLookupLanes(hn::Load(Floats(), table), hn::IndicesFromVec(Floats(), places));
    } else if constexpr (hn::MaxLanes(Floats()) == 8) {
      const auto in_half = hn::IndicesFromVec(Floats(), hn::And(places, hn::Set(integers, 7)));
      const auto lower = hn::TableLookupLanes(hn::Load(Floats(), table), in_half);
      const auto upper = hn::TableLookupLanes(hn::Load(Floats(), table + 8), in_half);
      return hn::IfThenElse(hn::RebindMask(Floats(), hn::Gt(places, hn::Set(integers, 7))), upper, lower);
    } else {
      return hn::GatherIndex(Floats(), table, places);
    }
  }
  alignas(64) float table[16];
};

// Loads numbers with a sign, 4 bits of exponent and 3 of fraction, without infinities. Moved to the places of these
// fields in a float16 number, their bits stand for a number that is smaller by a factor of 256. NaN has all bits of
// exponent and fraction set.
struct F8E4M3 {
  explicit F8E4M3(const StoredRows&) {}
  static std::size_t count_bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const auto bits = hn::PromoteTo(halves, LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i));
    const auto magnitude = hn::And(bits, hn::Set(halves, 0x7f));
    const auto sign = hn::ShiftLeft<8>(hn::And(bits, hn::Set(halves, 0x80)));
    const auto nan = hn::VecFromMask(halves, hn::Eq(magnitude, hn::Set(halves, 0x7f)));
    const auto number = ConvertHalves(Floats(), hn::Or(hn::Or(sign, hn::ShiftLeft<7>(magnitude)), nan));
    return hn::Mul(number, hn::Set(Floats(), 256.0F));
  }
};

// Loads numbers that are the upper half of a float16 number.
struct F8E5M2 {
  explicit F8E5M2(const StoredRows&) {}
  static std::size_t count_bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const auto bytes = LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i);
    return ConvertHalves(Floats(), hn::ShiftLeft<8>(hn::PromoteTo(halves, bytes)));
  }
};

// Loads the float32 scales of groups, and their zero points, or the one zero point of all.
class FloatFactors : public ColumnGroups {
 public:
  explicit FloatFactors(const StoredRows& rows)
      : ColumnGroups(rows), groups_((rows.columns + rows.group_size - 1) / rows.group_size) {}
  std::size_t find_first_group(std::size_t row) const { return row / matrix.scale_rows * groups_; }
  HWY_INLINE auto load_scale(std::size_t group) const { return broadcast(matrix.scales, group); }
  HWY_INLINE auto load_zero(std::size_t group) const {
    return matrix.zeros != nullptr ? broadcast(matrix.zeros, group) : hn::Set(Floats(), matrix.offset);
  }

 private:
  static HWY_INLINE hn::Vec<Floats> broadcast(const std::byte* floats, std::size_t index) {
    float number = 0;
    std::memcpy(&number, floats + sizeof number * index, sizeof number);
    return hn::Set(Floats(), number);
  }

  std::size_t groups_;
};

// Loads scales and zero points that belong to single columns. A group, as DecodeGroups() sees it, is a vector of
// columns, and each lane has its own scale. Rows with the same entry in row_groups share the scales.
class ColumnFactors {
 public:
  explicit ColumnFactors(const StoredRows& matrix)
      : scales_(reinterpret_cast<const float*>(matrix.scales)),
        zeros_(reinterpret_cast<const float*>(matrix.zeros)),
        matrix_(matrix) {}
  std::size_t find_first_group(std::size_t row) const { return matrix_.row_groups[row] * matrix_.columns; }
  std::size_t find_group(std::size_t column) const { return column; }
  std::size_t find_group_end(std::size_t group) const { return group + hn::Lanes(Floats()); }
  HWY_INLINE auto load_scale(std::size_t group) const { return Load(scales_ + group); }
  HWY_INLINE auto load_zero(std::size_t group) const {
    return zeros_ != nullptr ? Load(zeros_ + group) : hn::Set(Floats(), matrix_.offset);
  }

 private:
  const float* scales_;
  const float* zeros_;
  const StoredRows& matrix_;
};

// Multiplies columns [begin, end) of four rows by kTokens of the `tokens` tokens, and adds the products to `totals`.
template <std::size_t kTokens, class Numbers, class Factors>
HWY_INLINE void SumScaled(const StoredRows& matrix, const Numbers& numbers, const Factors& factors,
                          const Bytes (&rows)[4], const std::size_t (&groups)[4], std::size_t begin, std::size_t end,
                          const float* x, std::size_t tokens, NextRows& next, FourSums* totals) {
  const std::size_t lanes = hn::Lanes(Floats());
  const std::size_t step = Numbers::count_bytes(4 * lanes) * kTokens / tokens;  // bytes to prefetch
  hn::Vec<Floats> sums[kTokens][4];
  for (auto& of_token : sums) {
    for (auto& sum : of_token) sum = hn::Zero(Floats());
  }
  for (std::size_t i = begin; i < end;) {
    const std::size_t g = factors.find_group(i);
    const std::size_t last = std::min(end, factors.find_group_end(g));
    hn::Vec<Floats> scales[4];
    hn::Vec<Floats> zeros[4];
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < 4; ++r) {
      scales[r] = factors.load_scale(groups[r] + g);
      zeros[r] = factors.load_zero(groups[r] + g);
    }
    for (; i < last; i += lanes) {
      next.prefetch_more(step);
      hn::Vec<Floats> weights[4];
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < 4; ++r) weights[r] = hn::Mul(hn::Sub(numbers(rows[r], i), zeros[r]), scales[r]);
      HWY_UNROLL(4)
      for (std::size_t t = 0; t < kTokens; ++t) {
        const auto in = Load(x + t * matrix.columns + i);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < 4; ++r) sums[t][r] = MulAdd(weights[r], in, sums[t][r]);
      }
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) totals[t].add(FourSums::sum_lanes(Floats(), sums[t]));
}

// Multiplies few tokens. If there are fewer than four rows, repeats the last one.
template <class Numbers, class Factors>
void MultiplyScaled(const StoredRows& matrix, std::size_t first, std::size_t last, const FewFloats& in, float* y,
                    std::size_t stride) {
#if HWY_TARGET <= HWY_AVX3
  constexpr std::size_t kMost = 4;  // tokens whose sums fit the registers
#else
  constexpr std::size_t kMost = 1;
#endif
  const Numbers numbers(matrix);
  const std::size_t row_bytes = Numbers::count_bytes(matrix.columns);
  const Factors factors(matrix);
  for (std::size_t r = first; r < last; r += 4) {
    Bytes rows[4];
    std::size_t groups[4];
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = std::min(r + i, last - 1);
      rows[i] = reinterpret_cast<Bytes>(matrix.data) + row * row_bytes;
      groups[i] = factors.find_first_group(row);
    }
    NextRows next(rows[0]);
    FourSums totals[KernelInput::kFewTokens];
    for (std::size_t begin = 0; begin < matrix.columns; begin += kOneBlock) {
      const std::size_t end = std::min(matrix.columns, begin + kOneBlock);
      VisitTokens<kMost>(in.tokens, [&](auto some, std::size_t t) HWY_ATTR {
        SumScaled<some()>(matrix, numbers, factors, rows, groups, begin, end, in.x + t * matrix.columns, in.tokens,
                          next, totals + t);
      });
    }
    for (std::size_t t = 0; t < in.tokens; ++t) totals[t].store(y + t * stride + (r - first), last - r);
  }
}

template <class Numbers, class Factors = FloatFactors>
const TypeKernels& GetScaledKernels() {
  static constexpr TypeKernels kKernels = {.decode = &DecodeGroups<Numbers, Factors>,
                                           .multiply_floats = &MultiplyScaled<Numbers, Factors>};
  return kKernels;
}

const TypeKernels& GetScaled8() { return GetScaledKernels<Codes8>(); }
const TypeKernels& GetScaled4() { return GetScaledKernels<Codes4>(); }
const TypeKernels& GetCodebook4() { return GetScaledKernels<OfCodebook>(); }
const TypeKernels& GetF8E4M3() { return GetScaledKernels<F8E4M3>(); }
const TypeKernels& GetF8E5M2() { return GetScaledKernels<F8E5M2>(); }
const TypeKernels& GetByColumn8() { return GetScaledKernels<Codes8, ColumnFactors>(); }
const TypeKernels& GetByColumn4() { return GetScaledKernels<Codes4, ColumnFactors>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_scaled8_kernels, GetScaled8)
POISE_EXPORT_KERNELS(get_scaled4_kernels, GetScaled4)
POISE_EXPORT_KERNELS(get_codebook4_kernels, GetCodebook4)
POISE_EXPORT_KERNELS(get_scaled_f8_e4m3_kernels, GetF8E4M3)
POISE_EXPORT_KERNELS(get_scaled_f8_e5m2_kernels, GetF8E5M2)
POISE_EXPORT_KERNELS(get_by_column8_kernels, GetByColumn8)
POISE_EXPORT_KERNELS(get_by_column4_kernels, GetByColumn4)

}  // namespace poise
#endif
