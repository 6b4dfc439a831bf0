// Defines what decoders of blocks share: sixteen bytes as one value, and products of codes and scales. Highway compiles
// this for each kind of processor.
#if defined(POISE_BLOCK_CODES) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_BLOCK_CODES
#undef POISE_BLOCK_CODES
#else
#define POISE_BLOCK_CODES
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "numeric/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Holds sixteen bytes in a vector, or in an array for Highway's scalar target.
class Bytes16 {
 public:
#if HWY_TARGET == HWY_SCALAR
  template <typename Byte>
  static HWY_INLINE Bytes16 load(const Byte* from) {
    Bytes16 all;
    std::memcpy(all.bytes_.data(), from, 16);
    return all;
  }
  static HWY_INLINE Bytes16 fill(int byte) {
    Bytes16 all;
    all.bytes_.fill(static_cast<std::uint8_t>(byte));
    return all;
  }
  template <typename Byte>
  HWY_INLINE void store(Byte* to) const {
    std::memcpy(to, bytes_.data(), 16);
  }

  HWY_INLINE Bytes16 operator&(const Bytes16& other) const {
    return combine(other, [](unsigned a, unsigned b) { return a & b; });
  }
  HWY_INLINE Bytes16 operator|(const Bytes16& other) const {
    return combine(other, [](unsigned a, unsigned b) { return a | b; });
  }
  HWY_INLINE Bytes16 operator-(const Bytes16& other) const {
    return combine(other, [](unsigned a, unsigned b) { return a - b; });
  }
  HWY_INLINE Bytes16 and_not(const Bytes16& other) const {
    return combine(other, [](unsigned a, unsigned b) { return a & ~b; });
  }
  template <int kBits>
  HWY_INLINE Bytes16 shift_right() const {
    return combine(*this, [](unsigned a, unsigned) { return a >> kBits; });
  }
  template <int kBits>
  HWY_INLINE Bytes16 shift_left() const {
    return combine(*this, [](unsigned a, unsigned) { return a << kBits; });
  }
  // Returns byte indices[i] of these sixteen bytes for each i. Requires: each index is below 16.
  HWY_INLINE Bytes16 look_up(const Bytes16& indices) const {
    return combine(indices, [this](unsigned, unsigned index) { return unsigned{bytes_[index]}; });
  }

 private:
  template <typename Use>
  HWY_INLINE Bytes16 combine(const Bytes16& other, Use use) const {
    Bytes16 result;
    for (std::size_t i = 0; i < 16; ++i) result.bytes_[i] = static_cast<std::uint8_t>(use(bytes_[i], other.bytes_[i]));
    return result;
  }

  std::array<std::uint8_t, 16> bytes_;
#else
  template <typename Byte>
  static HWY_INLINE Bytes16 load(const Byte* from) {
    return Bytes16(hn::LoadU(Tag(), reinterpret_cast<const std::uint8_t*>(from)));
  }
  static HWY_INLINE Bytes16 fill(int byte) { return Bytes16(hn::Set(Tag(), static_cast<std::uint8_t>(byte))); }
  template <typename Byte>
  HWY_INLINE void store(Byte* to) const {
    hn::StoreU(bytes_, Tag(), reinterpret_cast<std::uint8_t*>(to));
  }

  HWY_INLINE Bytes16 operator&(const Bytes16& other) const { return Bytes16(hn::And(bytes_, other.bytes_)); }
  HWY_INLINE Bytes16 operator|(const Bytes16& other) const { return Bytes16(hn::Or(bytes_, other.bytes_)); }
  HWY_INLINE Bytes16 operator-(const Bytes16& other) const { return Bytes16(hn::Sub(bytes_, other.bytes_)); }
  HWY_INLINE Bytes16 and_not(const Bytes16& other) const { return Bytes16(hn::AndNot(other.bytes_, bytes_)); }
  template <int kBits>
  HWY_INLINE Bytes16 shift_right() const {
    if constexpr (kBits == 0) return *this;
    return Bytes16(hn::ShiftRight<kBits>(bytes_));
  }
  template <int kBits>
  HWY_INLINE Bytes16 shift_left() const {
    if constexpr (kBits == 0) return *this;
    return Bytes16(hn::ShiftLeft<kBits>(bytes_));
  }
  // Returns byte indices[i] of these sixteen bytes for each i. Requires: each index is below 16.
  HWY_INLINE Bytes16 look_up(const Bytes16& indices) const {
    return Bytes16(hn::TableLookupBytes(bytes_, indices.bytes_));
  }

 private:
  using Tag = hn::FixedTag<std::uint8_t, 16>;

  explicit HWY_INLINE Bytes16(hn::Vec<Tag> bytes) : bytes_(bytes) {}

  hn::Vec<Tag> bytes_;
#endif
};

// Computes out[i] = scales[i / kGroup] * codes[i].
template <std::size_t kGroup, std::size_t kCount>
HWY_INLINE void Scale(const std::int8_t* codes, const float* scales, float* out) {
  const hn::CappedTag<float, kGroup> floats;
  const hn::RebindToSigned<decltype(floats)> integers;
  const hn::Rebind<std::int8_t, decltype(floats)> bytes;
  for (std::size_t first = 0; first < kCount; first += kGroup) {
    const auto scale = hn::Set(floats, scales[first / kGroup]);
    for (std::size_t i = first; i < first + kGroup; i += hn::Lanes(floats)) {
      const auto code = hn::ConvertTo(floats, hn::PromoteTo(integers, hn::LoadU(bytes, codes + i)));
      hn::StoreU(hn::Mul(scale, code), floats, out + i);
    }
  }
}

// Computes out[i] = scales[g] * codes[i] + offsets[g] or, with kOffsetFirst, scales[g] * (codes[i] + offsets[g]), where
// g is i / kGroup. Rounds after each operation.
template <std::size_t kGroup, std::size_t kCount, bool kOffsetFirst = false>
HWY_INLINE void ScaleAndAdd(const std::int8_t* codes, const float* scales, const float* offsets, float* out) {
  const hn::CappedTag<float, kGroup> floats;
  const hn::RebindToSigned<decltype(floats)> integers;
  const hn::Rebind<std::int8_t, decltype(floats)> bytes;
  for (std::size_t first = 0; first < kCount; first += kGroup) {
    const auto scale = hn::Set(floats, scales[first / kGroup]);
    const auto offset = hn::Set(floats, offsets[first / kGroup]);
    for (std::size_t i = first; i < first + kGroup; i += hn::Lanes(floats)) {
      const auto code = hn::ConvertTo(floats, hn::PromoteTo(integers, hn::LoadU(bytes, codes + i)));
      const auto number = kOffsetFirst ? hn::Mul(scale, hn::Add(code, offset)) : hn::Add(hn::Mul(scale, code), offset);
      hn::StoreU(number, floats, out + i);
    }
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#ifndef POISE_EXPORT_DECODER
// Defines decode_*(), which calls the function for the running processor.
#define POISE_EXPORT_DECODER(name, Function)                          \
  HWY_EXPORT(Function);                                               \
  void name(const std::byte* blocks, std::size_t count, float* out) { \
    HWY_DYNAMIC_DISPATCH(Function)(blocks, count, out);               \
  }
#endif
