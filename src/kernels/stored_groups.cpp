// Multiplies by weights that are stored as integer codes with a scale and a zero point for each group of columns.
#include <algorithm>

#include "kernels/processor.hpp"
#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stored_groups.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/code_panel-inl.hpp"
#include "kernels/integer_sums-inl.hpp"
#include "kernels/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// Loads the float16 scales and zero points of groups.
class HalfFactors : public ColumnGroups {
 public:
  explicit HalfFactors(const StoredRows& rows) : ColumnGroups(rows), groups_(rows.columns / rows.group_size) {}
  std::size_t find_first_group(std::size_t row) const { return row * groups_; }
  HWY_INLINE auto load_scale(std::size_t group) const { return broadcast(matrix.scales, group); }
  HWY_INLINE auto load_zero(std::size_t group) const { return broadcast(matrix.zeros, group); }

 private:
  static HWY_INLINE hn::Vec<Floats> broadcast(const std::byte* halves, std::size_t index) {
    const hn::Rebind<std::uint16_t, Floats> narrow;
    std::uint16_t bits = 0;
    std::memcpy(&bits, halves + 2 * index, 2);
    return ConvertHalves(Floats(), hn::Set(narrow, bits));
  }

  std::size_t groups_;
};

#if HWY_TARGET != HWY_SCALAR

template <bool kVnni, class Unpack, class D>
void MultiplyOneGrouped(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Words& in,
                        float* y, std::size_t stride) {
  const std::size_t row_bytes = CountRowBytes<Unpack>(matrix);
  const std::size_t group_words = matrix.group_size / Unpack::kPlanes;
  constexpr std::size_t kBlockWords = kBlock / Unpack::kPlanes;
  GroupScales& scales = GroupScales::get_of_thread();
  for (std::size_t r = first; r < last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, last);
    const std::size_t rows = std::min<std::size_t>(4, last - r);
    std::size_t places[4];  // rows after the last one repeat it
    for (std::size_t i = 0; i < 4; ++i) places[i] = std::min(i, rows - 1);
    scales.load(matrix, r, rows, in.sums_stride);
    const float* group_scales[4];
    for (std::size_t i = 0; i < 4; ++i) group_scales[i] = scales.get_scales(places[i]);
    NextRows next(four.rows[0]);
    FourSums totals[KernelInput::kFewTokens];
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t words = std::min(row_bytes / 2 - b * kBlockWords, kBlockWords);
      VisitTokens<kFewTogether>(in.tokens, [&](auto count, std::size_t t) HWY_ATTR {
        constexpr std::size_t kRows = ChooseRowsTogether(count());
        using Sums = hn::RebindToFloat<hn::RepartitionToWide<D> >;
        hn::Vec<Sums> sums[count()][4];
        for (auto& of_token : sums) {
          for (auto& sum : of_token) sum = hn::Zero(Sums());
        }
        for (std::size_t at = 0; at < 4; at += kRows) {
          PlanesOfX x = {in.get_integers(t, b), in.count_integers(b) / Unpack::kPlanes, in.blocks() * kBlock};
          std::size_t g = b * (kBlock / matrix.group_size);
          for (std::size_t i = 0; i < words; i += group_words, ++g, x.x += group_words) {
            ExactSums<kVnni, D, kRows, count()> group;
            group.template add_bytes<Unpack>(four.rows + at, 2 * group_words, next, 2 * (b * kBlockWords + i), x);
            HWY_UNROLL(4)
            for (std::size_t k = 0; k < kRows; ++k) {
              const auto scale = hn::Set(Sums(), group_scales[at + k][g]);
              HWY_UNROLL(4)
              for (std::size_t j = 0; j < count(); ++j)
                sums[j][at + k] = MulAdd(group.of[j][k].convert_total(), scale, sums[j][at + k]);
            }
          }
        }
        for (std::size_t k = 0; k < count(); ++k)
          totals[t + k].add_product(in.get_scale(t + k, b), FourSums::sum_lanes(Sums(), sums[k]));
      });
    }
    for (std::size_t t = 0; t < in.tokens; ++t)
      scales.subtract_zeros(totals[t], places, in.get_sums(t)).store(y + t * stride + (r - first), last - r);
  }
}

// Chooses vectors of words that are not longer than a group.
template <bool kVnni, class Unpack>
void MultiplyGrouped(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Words& in,
                     float* y, std::size_t stride) {
  switch (matrix.group_size / Unpack::kPlanes) {
    case 8:
      return MultiplyOneGrouped<false, Unpack, hn::CappedTag<std::int16_t, 8> >(matrix, first, last, in, y, stride);
    case 16:
      return MultiplyOneGrouped<false, Unpack, hn::CappedTag<std::int16_t, 16> >(matrix, first, last, in, y, stride);
    default: return MultiplyOneGrouped<kVnni, Unpack, Words>(matrix, first, last, in, y, stride);
  }
}

template <class Unpack>
void MultiplyAnyGroups(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Words& in,
                       float* y, std::size_t stride) {
#if POISE_HAVE_VNNI
  if (has_vnni()) return MultiplyGrouped<true, Unpack>(matrix, first, last, in, y, stride);
#endif
  MultiplyGrouped<false, Unpack>(matrix, first, last, in, y, stride);
}

// Describes kColumns columns of codes for ExpandCodes(). (code - zero) * scale is code * scale plus the minimum -zero *
// scale.
template <std::size_t kColumns>
struct GroupCodes {
  template <std::size_t kTokens>
  using Sums = WordSums<kTokens>;
  static constexpr std::size_t kElements = kColumns;
  static constexpr std::size_t kBytes = 16;
  static constexpr std::size_t kScaled = 0;  // StoredRows::group_size columns share a scale
  static constexpr bool kHasMins = true;
  static constexpr int kOffset = 0;
  static constexpr bool kFactorsOfMatrix = true;

  static void store_factors(const StoredRows& matrix, const CodePart& part) {
    const std::size_t groups = matrix.columns / matrix.group_size;
    const std::size_t first = part.begin / matrix.group_size;
    const std::size_t count = (part.begin + part.count - 1) / matrix.group_size + 1 - first;
    constexpr std::size_t kMost = kCodeBlock / kLeastStep + 1;
    HWY_ALIGN float scales[kMost + kMaxLanes];
    HWY_ALIGN float zeros[kMost + kMaxLanes];
    for (std::size_t r = part.first; r < part.last; ++r) {
      ConvertHalfArray(matrix.scales + 2 * (r * groups + first), count, scales);
      ConvertHalfArray(matrix.zeros + 2 * (r * groups + first), count, zeros);
      for (std::size_t s = 0; s < part.count / part.step; ++s) {
        const std::size_t g = (part.begin + s * part.step) / matrix.group_size - first;
        part.scales[s * kCodeRows + r - part.first] = scales[g];
        part.mins[s * kCodeRows + r - part.first] = -zeros[g] * scales[g];
      }
    }
  }
};

struct Group8Type : GroupCodes<16> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    sums.multiply16(sums.load(0), 0);
  }
};

struct Group4Type : GroupCodes<32> {
  template <class Into>
  static HWY_INLINE void add_products(Into& sums) {
    MultiplyNibblePairs(sums, sums.load(0));
  }
};

#endif

const TypeKernels& GetGroup8() {
#if HWY_TARGET == HWY_SCALAR
  static constexpr TypeKernels kKernels = {.decode = &DecodeGroups<Codes8, HalfFactors>};
#else
  static constexpr TypeKernels kKernels = {.decode = &DecodeGroups<Codes8, HalfFactors>,
                                           .multiply_words = &MultiplyAnyGroups<EightBits<false> >,
                                           .least_group = 16,
                                           .panels = MakeCodeForm<Group8Type, 255>()};
#endif
  return kKernels;
}

const TypeKernels& GetGroup4() {
#if HWY_TARGET == HWY_SCALAR
  static constexpr TypeKernels kKernels = {.decode = &DecodeGroups<Codes4, HalfFactors>};
#else
  // A group of 32 codes has 8 words, which every processor can load as one vector.
  static constexpr TypeKernels kKernels = {.decode = &DecodeGroups<Codes4, HalfFactors>,
                                           .multiply_words = &MultiplyAnyGroups<FourBits<false, 4> >,
                                           .least_group = 32,
                                           .panels = MakeCodeForm<Group4Type, 15>()};
#endif
  return kKernels;
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_KERNELS(get_group8_kernels, GetGroup8)
POISE_EXPORT_KERNELS(get_group4_kernels, GetGroup4)

}  // namespace poise
#endif
