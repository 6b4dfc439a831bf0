#include "kernels/tile_layout.hpp"

#include <limits>

#include "kernels/processor.hpp"
#include "kernels/stored_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_panel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

static_assert(kCodeRows == kTileRows && kTileTokens == 16);

// A vector has at most 16 lanes: at least 16 columns share a scale, and a tile has 16 tokens.
using Numbers = hn::CappedTag<float, 16>;

// Holds the scale of a row's codes, and the number that a code of 0 stands for.
struct Factors {
  hn::Vec<Numbers> scale;
  hn::Vec<Numbers> start;

  HWY_INLINE Factors(const CodePart& part, std::size_t step, std::size_t row)
      : scale(hn::Set(Numbers(), part.scales[step * kTileRows + row])),
        start(hn::Set(Numbers(), part.mins[step * kTileRows + row])) {}
};

// Sets part.mins to the numbers that codes of 0 stand for. A lane is a row.
void PrepareFactors(const CodePart& part, const CodeForm& form) {
  // Rounding to bfloat16 adds to the bits of a number and keeps the upper half. This NaN stays NaN then; some other NaN
  // would not.
  const auto nan = hn::Set(Numbers(), std::numeric_limits<float>::quiet_NaN());
  const auto quiet = [&](auto number) HWY_ATTR { return hn::IfThenElse(hn::Eq(number, number), number, nan); };
  const auto taken = hn::Set(Numbers(), static_cast<float>(-form.offset));
  for (std::size_t s = 0; s < part.count / part.step; ++s) {
    for (std::size_t r = 0; r < part.last - part.first; r += hn::Lanes(Numbers())) {
      const std::size_t at = s * kTileRows + r;
      const auto scale = quiet(hn::LoadU(Numbers(), part.scales + at));
      const auto min = form.has_mins ? quiet(hn::LoadU(Numbers(), part.mins + at)) : hn::Zero(Numbers());
      hn::StoreU(scale, Numbers(), part.scales + at);
      hn::StoreU(hn::MulAdd(taken, scale, min), Numbers(), part.mins + at);
    }
  }
}

// Returns a vector of numbers: codes times the factors' scales, plus their starts.
HWY_INLINE auto DecodeNumbers(const std::uint8_t* codes, const Factors& factors) {
  const hn::RebindToSigned<Numbers> integers;
  const hn::Rebind<std::uint8_t, Numbers> bytes;
  return hn::MulAdd(hn::ConvertTo(Numbers(), hn::PromoteTo(integers, hn::LoadU(bytes, codes))), factors.scale,
                    factors.start);
}

// Decodes two vectors of codes, each with its own factors, and rounds them to bfloat16 with integer instructions.
struct InWords {
  Factors first;
  Factors second;

  HWY_INLINE void round(const std::uint8_t* codes, std::uint16_t* to) const {
    store(DecodeNumbers(codes, first), to);
    store(DecodeNumbers(codes + hn::Lanes(Numbers()), second), to + hn::Lanes(Numbers()));
  }

 private:
  static HWY_INLINE void store(hn::Vec<Numbers> numbers, std::uint16_t* to) {
    const hn::RebindToUnsigned<Numbers> words;
    const hn::Rebind<std::uint16_t, Numbers> halves;
    hn::StoreU(hn::TruncateTo(halves, RoundToUpperHalf(words, hn::BitCast(words, numbers))), halves, to);
  }
};

#if HWY_TARGET <= HWY_AVX3
struct ByProcessor {
  Factors first;
  Factors second;

  HWY_INLINE void round(const std::uint8_t* codes, std::uint16_t* to) const {
    hn::StoreU(RoundTwo(DecodeNumbers(codes, first), DecodeNumbers(codes + 16, second)),
               hn::FixedTag<std::uint16_t, 32>(), to);
  }
};

// Finds the rounded numbers of codes below 16 in a table. The table of the second vector follows that of the first.
struct ByTable {
  __m512i tables;

  HWY_INLINE ByTable(const Factors& first, const Factors& second) {
    const auto all = hn::Iota(Numbers(), 0);
    tables = RoundTwo(hn::MulAdd(all, first.scale, first.start), hn::MulAdd(all, second.scale, second.start)).raw;
  }

  HWY_INLINE void round(const std::uint8_t* codes, std::uint16_t* to) const {
    const __m512i begins = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(16), 1);
    const __m512i words = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_or_si512(words, begins), tables));
  }
};
#endif

// Decodes and rounds all rows of a part, two vectors at a time. Both vectors belong to one step, or each to its own
// step.
template <class How>
void RoundRows(const CodePart& part, std::uint16_t* out, std::size_t stride) {
  const std::size_t pair = 2 * hn::Lanes(Numbers());
  for (std::size_t r = 0; r < part.last - part.first; ++r) {
    if (part.between != nullptr) part.between();
    const std::uint8_t* const codes = part.codes + r * part.row_bytes;
    std::uint16_t* const to = out + r * stride;
    if (part.step < pair) {
      for (std::size_t i = 0, s = 0; i < part.count; i += pair, s += 2)
        How{Factors(part, s, r), Factors(part, s + 1, r)}.round(codes + i, to + i);
      continue;
    }
    for (std::size_t i = 0, s = 0; i < part.count; ++s) {
      const Factors factors(part, s, r);
      const How how{factors, factors};
      for (const std::size_t end = i + part.step; i < end; i += pair) how.round(codes + i, to + i);
    }
  }
}

#if HWY_TARGET <= HWY_AVX3
// Does the same as RoundRows<ByTable>(), but reads codes of four bits directly from the blocks of the matrix.
template <std::size_t kTogether>
void RoundNibbles(const StoredRows& matrix, const CodePart& part, const CodeForm& form, std::uint16_t* out,
                  std::size_t stride) {
  const hn::FixedTag<std::uint16_t, 32> words;
  const hn::FixedTag<std::uint8_t, 32> bytes;
  const NibblePlaces& places = form.nibbles;
  const std::size_t row_bytes = matrix.columns / form.elements * places.block_bytes;
  const auto* row = reinterpret_cast<const std::uint8_t*>(matrix.data) + part.first * row_bytes +
                    part.begin / form.elements * places.block_bytes + places.first;
  const auto shifts =
      hn::Combine(words, hn::Set(hn::Half<decltype(words)>(), 4), hn::Zero(hn::Half<decltype(words)>()));
  for (std::size_t r = 0; r < part.last - part.first; ++r, row += row_bytes, out += stride) {
    if (part.between != nullptr && r % 4 == 0) part.between();
    const auto store = [&](std::size_t column, auto halves) HWY_ATTR {
      const Factors factors(part, column / 32, r);
      // The table has the same sixteen numbers twice, so bits above the lower four of an index do not matter.
      _mm512_storeu_si512(out + column, _mm512_permutexvar_epi16(halves.raw, ByTable(factors, factors).tables));
    };
    const std::uint8_t* block = row;
    for (std::size_t begin = 0; begin < part.count; begin += form.elements, block += places.block_bytes) {
      for (std::size_t i = 0; i < form.elements; i += 2 * kTogether) {
        if constexpr (kTogether == 16) {
          const auto twice = hn::PromoteTo(words, hn::LoadDup128(bytes, block + i / 2));
          store(begin + i, hn::Shr(twice, shifts));
        } else {
          const auto both = hn::PromoteTo(words, hn::LoadU(bytes, block + i / 2));
          store(begin + i, both);
          store(begin + i + 32, hn::ShiftRight<4>(both));
        }
      }
    }
  }
}
#endif

void RoundCodes(const StoredRows& matrix, CodePart part, const CodeForm& form, std::uint16_t* out, std::size_t stride) {
#if HWY_TARGET <= HWY_AVX3
  const bool are_nibbles = has_bfloat16() && form.nibbles.block_bytes > 0 && part.step == 32;
  if (are_nibbles) part.codes = nullptr;
#endif
  form.expand(matrix, part);
  PrepareFactors(part, form);
#if HWY_TARGET <= HWY_AVX3
  if (are_nibbles)
    return form.nibbles.together == 16 ? RoundNibbles<16>(matrix, part, form, out, stride)
                                       : RoundNibbles<32>(matrix, part, form, out, stride);
  if (has_bfloat16())
    return form.largest < 16 ? RoundRows<ByTable>(part, out, stride) : RoundRows<ByProcessor>(part, out, stride);
#endif
  RoundRows<InWords>(part, out, stride);
}

#if HWY_TARGET != HWY_SCALAR
// Returns a vector with four words from each of several rows, which are four rows apart. `stride` is in words.
template <class D>
HWY_INLINE hn::Vec<D> LoadEveryFourthRow(D tag, const std::uint32_t* from, std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(tag, from);
  } else {
    const hn::Half<D> half;
    const std::size_t upper = hn::MaxLanes(half) * stride;
    return hn::Combine(tag, LoadEveryFourthRow(half, from + upper, stride), LoadEveryFourthRow(half, from, stride));
  }
}
#endif

// Transposes 16 rows of 16 words. Strides are in words.
void TransposeWords(const std::uint32_t* from, std::size_t stride, std::uint32_t* to, std::size_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t r = 0; r < 16; ++r) {
    for (std::size_t c = 0; c < 16; ++c) to[c * to_stride + r] = from[r * stride + c];
  }
#else
  const hn::CappedTag<std::uint32_t, 16> words;
  const hn::Repartition<std::uint64_t, decltype(words)> pairs;
  for (std::size_t c = 0; c < 16; c += 4) {
    for (std::size_t r = 0; r < 16; r += hn::Lanes(words)) {
      const auto rows = [&](std::size_t i)
                            HWY_ATTR { return LoadEveryFourthRow(words, from + (r + i) * stride + c, stride); };
      const auto a0 = rows(0);
      const auto a1 = rows(1);
      const auto a2 = rows(2);
      const auto a3 = rows(3);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(words, a0, a1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(words, a2, a3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(words, a0, a1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(words, a2, a3));
      const auto store = [&](auto transposed, std::size_t i) HWY_ATTR {
        hn::StoreU(hn::BitCast(words, transposed), words, to + (c + i) * to_stride + r);
      };
      store(hn::InterleaveLower(pairs, low01, low23), 0);
      store(hn::InterleaveUpper(pairs, low01, low23), 1);
      store(hn::InterleaveLower(pairs, high01, high23), 2);
      store(hn::InterleaveUpper(pairs, high01, high23), 3);
    }
  }
#endif
}

void StoreTilePairs(const std::uint16_t* first, const std::uint16_t* second, std::size_t count, std::uint16_t* out,
                    std::size_t step) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t* const to = out + i / kTileTokens * step + i % kTileTokens * 2;
    to[0] = first[i];
    to[1] = second[i];
  }
#else
  const hn::FixedTag<std::uint16_t, 8> eight;
  for (std::size_t i = 0; i < count; i += kTileTokens, out += step) {
    for (std::size_t half = 0; half < kTileTokens; half += 8) {
      const auto a = hn::LoadU(eight, first + i + half);
      const auto b = hn::LoadU(eight, second + i + half);
      hn::StoreU(hn::InterleaveLower(eight, a, b), eight, out + 2 * half);
      hn::StoreU(hn::InterleaveUpper(eight, a, b), eight, out + 2 * half + 8);
    }
  }
#endif
}

// Adds a vector of sums at a time. A lane is a token, also in ScaleSums().
void AddCodeSums(const std::int32_t* upper, const std::int32_t* lower, const CodeFactors& factors, bool is_first,
                 float* sums) {
  const Numbers numbers;
  const hn::RebindToSigned<Numbers> integers;
  for (std::size_t t = 0; t < kTileTokens; t += hn::Lanes(numbers)) {
    const auto start = hn::LoadU(integers, factors.starts + t);
    const auto scale = hn::LoadU(numbers, factors.scales + t);
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const std::size_t at = r * kTileTokens + t;
      // 32 bits hold the sum of all three; an overflow of a partial sum does no harm.
      const auto sum =
          hn::Add(hn::Add(hn::ShiftLeft<8>(hn::LoadU(integers, upper + at)), start), hn::LoadU(integers, lower + at));
      const auto before = is_first ? hn::Zero(numbers) : hn::LoadU(numbers, sums + at);
      hn::StoreU(hn::MulAdd(hn::ConvertTo(numbers, sum), scale, before), numbers, sums + at);
    }
  }
}

void ScaleSums(float scale, const float* added, float* sums) {
  const Numbers numbers;
  const auto factor = hn::Set(numbers, scale);
  for (std::size_t t = 0; t < kTileTokens; t += hn::Lanes(numbers)) {
    const auto term = hn::LoadU(numbers, added + t);
    for (std::size_t r = 0; r < kTileRows; ++r) {
      float* const at = sums + r * kTileTokens + t;
      hn::StoreU(hn::MulAdd(factor, hn::LoadU(numbers, at), term), numbers, at);
    }
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(RoundCodes);
HWY_EXPORT(TransposeWords);
HWY_EXPORT(StoreTilePairs);
HWY_EXPORT(AddCodeSums);
HWY_EXPORT(ScaleSums);

void round_codes(const StoredRows& matrix, const CodePart& part, const CodeForm& form, std::uint16_t* out,
                 std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(RoundCodes)(matrix, part, form, out, stride);
}

void store_tile_words(const void* tokens, std::size_t stride, std::size_t words, void* out) {
  const auto* const from = static_cast<const std::uint32_t*>(tokens);
  auto* const to = static_cast<std::uint32_t*>(out);
  const auto transpose = HWY_DYNAMIC_DISPATCH(TransposeWords);
  for (std::size_t i = 0; i < words; i += 16) transpose(from + i, stride / 4, to + i * kTileTokens, kTileTokens);
}

void store_tile_pairs(const std::uint16_t* first, const std::uint16_t* second, std::size_t count, std::uint16_t* out,
                      std::size_t step) {
  HWY_DYNAMIC_DISPATCH(StoreTilePairs)(first, second, count, out, step);
}

void add_code_sums(const std::int32_t* upper, const std::int32_t* lower, const CodeFactors& factors, bool is_first,
                   float* sums) {
  HWY_DYNAMIC_DISPATCH(AddCodeSums)(upper, lower, factors, is_first, sums);
}

void scale_sums(float scale, const float* added, float* sums) { HWY_DYNAMIC_DISPATCH(ScaleSums)(scale, added, sums); }

void store_sums(const float* sums, std::size_t rows, std::size_t tokens, float* y, std::size_t stride) {
  constexpr std::size_t kWords = 16;
  const auto transpose = HWY_DYNAMIC_DISPATCH(TransposeWords);
  for (std::size_t r = 0; r < rows; r += kWords) {
    const auto* const from = reinterpret_cast<const std::uint32_t*>(sums + r * kTileTokens);
    if (tokens == kTileTokens && rows - r >= kWords) {
      transpose(from, kTileTokens, reinterpret_cast<std::uint32_t*>(y + r), stride);
      continue;
    }
    float transposed[kTileTokens * kWords];
    transpose(from, kTileTokens, reinterpret_cast<std::uint32_t*>(transposed), kWords);
    for (std::size_t t = 0; t < tokens; ++t)
      std::copy_n(transposed + t * kWords, std::min(kWords, rows - r), y + t * stride + r);
  }
}

}  // namespace poise
#endif
