// Weights stored as codes or small floating-point numbers with float32 scales, of groups of columns and of rows. They
// become float32 before products.
#include <algorithm>
#include <cstring>

#include "kernels/stored_type.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/stored_scaled.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/code_rows-inl.hpp"
#include "kernels/halves-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

// The numbers of rows, from an element on, before scales and zero points. bytes(n) is the size of n elements.
struct Scaled8 : Codes8 {
  explicit Scaled8(const StoredRows&) {}
};

struct Scaled4 : Codes4 {
  explicit Scaled4(const StoredRows&) {}
};

struct OfCodebook {
  explicit OfCodebook(const StoredRows& matrix) { std::memcpy(table, matrix.table, sizeof table); }
  static std::size_t bytes(std::size_t count) { return count / 2; }
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

// Sign, 4 bits of exponent and 3 of fraction, without infinities: the bits of a float16 number that is 256 times too
// small. All bits set is NaN.
struct F8E4M3 {
  explicit F8E4M3(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const auto bits = hn::PromoteTo(halves, LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i));
    const auto magnitude = hn::And(bits, hn::Set(halves, 0x7f));
    const auto sign = hn::ShiftLeft<8>(hn::And(bits, hn::Set(halves, 0x80)));
    const auto nan = hn::VecFromMask(halves, hn::Eq(magnitude, hn::Set(halves, 0x7f)));
    const auto number = HalvesToFloats(Floats(), hn::Or(hn::Or(sign, hn::ShiftLeft<7>(magnitude)), nan));
    return hn::Mul(number, hn::Set(Floats(), 256.0F));
  }
};

// The upper half of a float16 number.
struct F8E5M2 {
  explicit F8E5M2(const StoredRows&) {}
  static std::size_t bytes(std::size_t count) { return count; }
  HWY_INLINE auto operator()(Bytes row, std::size_t i) const {
    const hn::Rebind<std::uint16_t, Floats> halves;
    const auto bytes = LoadU(hn::Rebind<std::uint8_t, Floats>(), row + i);
    return HalvesToFloats(Floats(), hn::ShiftLeft<8>(hn::PromoteTo(halves, bytes)));
  }
};

HWY_INLINE auto BroadcastFloat(const std::byte* floats, std::size_t index) {
  float number = 0;
  std::memcpy(&number, floats + sizeof number * index, sizeof number);
  return hn::Set(Floats(), number);
}

// Groups are whole vectors, as columns of a part are.
template <class Numbers>
void DecodeScaled(const StoredRows& matrix, const DecodedPart& part) {
  const Numbers numbers(matrix);
  const std::size_t lanes = hn::Lanes(Floats());
  const std::size_t groups = (matrix.columns + matrix.group_size - 1) / matrix.group_size;
  for (std::size_t r = part.first; r < part.last; ++r) {
    const Bytes row = reinterpret_cast<Bytes>(matrix.data) + r * Numbers::bytes(matrix.columns);
    const std::size_t first = r / matrix.scale_rows * groups;
    float* const out = part.out + (r - part.first) * part.stride;
    for (std::size_t i = 0; i < part.count;) {
      const std::size_t g = (part.begin + i) / matrix.group_size;
      const std::size_t end = std::min(part.count, (g + 1) * matrix.group_size - part.begin);
      const auto scale = BroadcastFloat(matrix.scales, first + g);
      const auto zero =
          matrix.zeros != nullptr ? BroadcastFloat(matrix.zeros, first + g) : hn::Set(Floats(), matrix.offset);
      for (; i < end; i += lanes)
        hn::StoreU(hn::Mul(hn::Sub(numbers(row, part.begin + i), zero), scale), Floats(), out + i);
    }
  }
}

template <class Numbers>
const TypeKernels& ScaledKernels() {
  static constexpr TypeKernels kKernels = {.decode = &DecodeScaled<Numbers>};
  return kKernels;
}

const TypeKernels& OfScaled8() { return ScaledKernels<Scaled8>(); }
const TypeKernels& OfScaled4() { return ScaledKernels<Scaled4>(); }
const TypeKernels& OfCodebook4() { return ScaledKernels<OfCodebook>(); }
const TypeKernels& OfF8E4M3() { return ScaledKernels<F8E4M3>(); }
const TypeKernels& OfF8E5M2() { return ScaledKernels<F8E5M2>(); }

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

HWY_EXPORT(OfScaled8);
HWY_EXPORT(OfScaled4);
HWY_EXPORT(OfCodebook4);
HWY_EXPORT(OfF8E4M3);
HWY_EXPORT(OfF8E5M2);

}  // namespace

const TypeKernels& scaled8_kernels() { return HWY_DYNAMIC_DISPATCH(OfScaled8)(); }
const TypeKernels& scaled4_kernels() { return HWY_DYNAMIC_DISPATCH(OfScaled4)(); }
const TypeKernels& codebook4_kernels() { return HWY_DYNAMIC_DISPATCH(OfCodebook4)(); }
const TypeKernels& scaled_f8_e4m3_kernels() { return HWY_DYNAMIC_DISPATCH(OfF8E4M3)(); }
const TypeKernels& scaled_f8_e5m2_kernels() { return HWY_DYNAMIC_DISPATCH(OfF8E5M2)(); }

}  // namespace poise
#endif
