// Unpacks stored types into panels of codes (code_panel.hpp). The Type classes are those of blocks/sums-inl.hpp: their
// add_products() gets a CodeWriter, which stores the codes, in place of a class that sums products.
#if defined(POISE_KERNELS_CODE_PANEL) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_KERNELS_CODE_PANEL
#undef POISE_KERNELS_CODE_PANEL
#else
#define POISE_KERNELS_CODE_PANEL
#endif

#include "kernels/blocks/sums-inl.hpp"
#include "kernels/code_panel.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

// Computes where codes go in a panel, in bytes. A vector has 16 columns of each of its rows. Its 32-bit words,
// rearranged by `order`, are four pieces, which go to four places.
struct CodePlaces {
  std::size_t row_step;
  std::size_t column_step;
  std::size_t to_second;  // the distance from the first piece to the second, and from the third to the fourth
  std::size_t to_third;   // the distance from the first piece to the third
  alignas(64) std::uint32_t order[16];

  explicit CodePlaces(const CodePart& part) {
    constexpr bool kWholeRows = kRowsOfVector == 4;
    const bool by_row = part.row_bytes != 0;
    row_step = by_row ? part.row_bytes : 4;
    column_step = by_row ? 1 : kCodeRows;
    to_second = by_row ? (kWholeRows ? row_step : 8) : 4 * kCodeRows;
    to_third = by_row ? (kWholeRows ? 2 : 1) * row_step : 8 * kCodeRows;
    for (std::uint32_t i = 0; i < 16; ++i) order[i] = by_row ? i : i % kRowsOfVector * 4 + i / kRowsOfVector;
  }
};

// Stands in for a class of sums (blocks/row_sums-inl.hpp): stores the codes of a block in a panel, for the rows of one
// vector.
struct CodeWriter {
  struct Sum {
    static int total() { return 0; }
  };

  const Bytes* rows;
  std::size_t start;
  std::uint8_t* out;  // the place of the first four codes of the first row
  const CodePlaces* places;

  HWY_INLINE Codes load(std::size_t at) const { return LoadRows(CodeTag(), rows, start + at); }

  // Stores the codes of columns [16 i, 16 i + 16) of the block.
  HWY_INLINE void write(Codes codes, std::size_t i) const {
    const hn::Repartition<std::uint32_t, CodeTag> words;
    std::uint8_t* const to = out + 16 * i * places->column_step;
    const auto ordered = hn::TableLookupLanes(hn::BitCast(words, codes), hn::SetTableIndices(words, places->order));
#if HWY_TARGET <= HWY_AVX3
    store<0>(ordered.raw, to);
    store<1>(ordered.raw, to + places->to_second);
    store<2>(ordered.raw, to + places->to_third);
    store<3>(ordered.raw, to + places->to_third + places->to_second);
#else
    alignas(32) std::uint8_t pieces[32];
    hn::Store(hn::BitCast(CodeTag(), ordered), CodeTag(), pieces);
    for (std::size_t k = 0; k < 4; ++k)
      std::memcpy(to + k % 2 * places->to_second + k / 2 * places->to_third, pieces + 8 * k, 8);
#endif
  }
  HWY_INLINE void write_signed(Codes codes, std::size_t i) const { write(hn::Xor(codes, hn::Set(CodeTag(), 128)), i); }

  HWY_INLINE void multiply16(Codes codes, std::size_t i) const { write(codes, i); }
  HWY_INLINE void multiply32(Codes first, Codes second, std::size_t i) const {
    write(first, 2 * i);
    write(second, 2 * i + 1);
  }
  HWY_INLINE void multiply_signed32(Codes first, Codes second, std::size_t i) const {
    write_signed(first, 2 * i);
    write_signed(second, 2 * i + 1);
  }
  template <std::size_t kAt>
  HWY_INLINE void multiply32(Codes first, Codes second) const {
    multiply32(first, second, kAt);
  }
  template <std::size_t kAt>
  HWY_INLINE void multiply_two16(Codes first, Codes second) const {
    multiply32(first, second, kAt);
  }
  HWY_INLINE void add(Sum&, Codes codes, std::size_t i) const { write_signed(codes, i); }
  HWY_INLINE void finish(int, std::size_t) const {}

 private:
#if HWY_TARGET <= HWY_AVX3
  // Stores a quarter of a vector. Uses assembly, because GCC 12 warns about its own intrinsic function.
  template <int kQuarter>
  static HWY_INLINE void store(__m512i codes, std::uint8_t* to) {
    struct Four {
      std::uint8_t bytes[16];
    };
    asm("vextracti32x4 %2, %1, %0" : "=m"(*reinterpret_cast<Four*>(to)) : "v"(codes), "i"(kQuarter));
  }
#endif
};

// Stores the scales and minimums that Type::pass_factors() computes: those of four rows, for each group of columns.
struct FactorTable {
  float (*scales)[4];
  float (*mins)[4];

  template <int kWhich, class D>
  HWY_INLINE void accept_scale(D floats, std::size_t i, hn::Vec<D> factors) {
    hn::StoreU(factors, floats, scales[i]);
  }
  template <int kWhich, class D>
  HWY_INLINE void accept_min(D floats, std::size_t i, hn::Vec<D> factors) {
    hn::StoreU(factors, floats, mins[i]);
  }
  HWY_INLINE void accept_written_scales(std::size_t) {}
};

// Stores the scales and minimums of super blocks (256 codes): a scale is a byte times a float16 number of the block.
template <class Type>
HWY_INLINE void StoreSuperFactors(const Bytes (&rows)[4], std::size_t start, std::size_t blocks, FactorTable& out) {
  constexpr std::size_t kScales = 256 / Type::kScaled;
  alignas(64) std::uint8_t bytes[4][16];
  const Bytes of_rows[4] = {bytes[0], bytes[1], bytes[2], bytes[3]};
  for (std::size_t b = 0; b < blocks; ++b, start += Type::kBytes) {
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::StoreU(Type::load_factors(CodeWriter{rows + v * kRowsOfVector, start, nullptr, nullptr}), CodeTag(),
                 bytes[v * kRowsOfVector]);
    const TransposedWords transposed(of_rows, 0);
    const auto number = hn::Mul(LoadFourHalves(rows, start + Type::kNumber), hn::Set(FourFloats(), Type::kUnit));
    for (std::size_t i = 0; i < kScales / 4; ++i) PassScales(transposed.words[i], number, out, b * kScales + 4 * i);
    if constexpr (Type::kHasMins) {
      const auto min = hn::Neg(LoadFourHalves(rows, start + Type::kMin));
      for (std::size_t i = 0; i < 2; ++i) PassMins(transposed.words[2 + i], min, out, b * kScales + 4 * i);
    }
  }
}

// Stores the scales and minimums of four rows in the panel.
template <class Type>
HWY_INLINE void ExpandFactors(const StoredRows& matrix, const CodePart& part, const FourBytes& four, std::size_t row,
                              std::size_t start) {
  alignas(64) float scales[kCodeBlock / kLeastStep][4];
  alignas(64) float mins[kCodeBlock / kLeastStep][4];
  FactorTable table = {scales, mins};
  if constexpr (requires { Type::kNumber; }) {
    StoreSuperFactors<Type>(four.rows, start, part.count / 256, table);
  } else if constexpr (requires { Type::kScalesApart; }) {
    Type::pass_factors(matrix, {row, part.last, part.begin / Type::kScaled, part.count / Type::kScaled}, table);
  } else {
    Type::pass_factors(four.rows, start, part.count / Type::kElements, table);
  }
  const std::size_t steps =
      part.count / part.step;  // computed once, since the compiler assumes that stores may change `part`
  for (std::size_t s = 0; s < steps; ++s) {
    const std::size_t group = s * part.step / Type::kScaled;
    const std::size_t to = s * kCodeRows + row - part.first;
    hn::StoreU(hn::Load(FourFloats(), scales[group]), FourFloats(), part.scales + to);
    if constexpr (Type::kHasMins) hn::StoreU(hn::Load(FourFloats(), mins[group]), FourFloats(), part.mins + to);
  }
}

template <class Type>
void ExpandCodes(const StoredRows& matrix, const CodePart& part) {
  constexpr std::size_t kElements = CountBlockElements<Type>();
  constexpr bool kOfMatrix = requires { Type::kFactorsOfMatrix; };
  const std::size_t row_bytes = matrix.columns / kElements * Type::kBytes;
  const std::size_t blocks = part.count / kElements;
  const std::size_t start = part.begin / kElements * Type::kBytes;
  // If the panel has the order for vectors, prefetches the bytes that are read next: the same columns of the rows of
  // the next panel, and the next columns of these rows.
  const std::size_t asked = part.row_bytes == 0 ? blocks * Type::kBytes : 0;
  const CodePlaces places(part);
  for (std::size_t r = part.first; r < part.last; r += 4) {
    const FourBytes four(matrix, row_bytes, r, part.last);
    for (const Bytes row : four.rows) {
      for (std::size_t i = 0; i < asked; i += 64) {
        __builtin_prefetch(row + start + kCodeRows * row_bytes + i, 0, 2);
        __builtin_prefetch(row + start + asked + i, 0, 3);
      }
    }
    for (std::size_t v = 0; v < kVectors && part.codes != nullptr; ++v) {
      CodeWriter writer = {four.rows + v * kRowsOfVector, start,
                           part.codes + (r - part.first + v * kRowsOfVector) * places.row_step, &places};
      for (std::size_t i = 0; i < blocks; ++i) {
        if (i * kElements % CodePart::kLargestBlock == 0 && part.between != nullptr) part.between();
        Type::add_products(writer);
        writer.start += Type::kBytes;
        writer.out += kElements * places.column_step;
      }
    }
    if constexpr (!kOfMatrix) ExpandFactors<Type>(matrix, part, four, r, start);
  }
  if constexpr (kOfMatrix) Type::store_factors(matrix, part);
}

#endif

template <class Type>
constexpr NibblePlaces GetNibblePlaces() {
  if constexpr (requires { Type::kNibbles; }) return Type::kNibbles;
  return {};
}

// Describes how a type becomes panels. Codes with a sign are stored plus 128. Requires: no stored code is above
// kLargest.
template <class Type, std::uint8_t kLargest, bool kSigned = false>
constexpr CodeForm MakeCodeForm() {
#if HWY_TARGET <= HWY_AVX2
  return {.expand = &ExpandCodes<Type>,
          .elements = CountBlockElements<Type>(),
          .group = Type::kScaled,
          .offset = kSigned ? 128 : static_cast<std::int32_t>(Type::kOffset),
          .has_mins = Type::kHasMins,
          .integers = Type::template Sums<1>::kBytes ? PanelIntegers::bytes : PanelIntegers::words,
          .largest = kLargest,
          .vnni = POISE_HAVE_VNNI != 0,
          .nibbles = GetNibblePlaces<Type>()};
#else
  return {};
#endif
}

template <class Type, std::uint8_t kLargest, bool kSigned = false>
const TypeKernels& GetPanelKernels() {
  static constexpr TypeKernels kKernels = [] {
    TypeKernels kernels = kOfBlocks<Type>;
    kernels.panels = MakeCodeForm<Type, kLargest, kSigned>();
    return kernels;
  }();
  return kKernels;
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
