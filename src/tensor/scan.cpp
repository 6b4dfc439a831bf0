#include "tensor/scan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "bytes/little_endian.hpp"
#include "tensor/float_formats.hpp"

namespace poise {
namespace {

// Looks at blocks that are free of branches, so that the compiler makes vectors of them, and searches only a bad one.
template <typename Word, typename IsBad>
std::optional<std::uint64_t> find(std::span<const std::byte> bytes, IsBad is_bad) {
  constexpr std::size_t kBlock = 1024;
  const std::size_t count = bytes.size() / sizeof(Word);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, count);
    unsigned any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= static_cast<unsigned>(is_bad(load_le<Word>(bytes.data() + i * sizeof(Word))));
    if (any == 0) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (is_bad(load_le<Word>(bytes.data() + i * sizeof(Word)))) return i;
    }
  }
  return std::nullopt;
}

// In IEEE formats infinities and NaN are the codes with all exponent bits set.
template <typename Word, Word exponent>
std::optional<std::uint64_t> find_exponent(std::span<const std::byte> bytes) {
  return find<Word>(bytes, [](Word word) { return (word & exponent) == exponent; });
}

std::optional<std::uint64_t> find_in_table(DType dtype, std::span<const std::byte> bytes) {
  std::array<bool, 256> bad{};
  for (std::uint32_t code = 0; code < bad.size(); ++code) bad[code] = !std::isfinite(decode_float(dtype, code));
  return find<std::uint8_t>(bytes, [&](std::uint8_t code) { return bad[code]; });
}

}  // namespace

std::optional<std::uint64_t> find_bad_value(DType dtype, std::span<const std::byte> elements) {
  switch (dtype) {
    case DType::f64: return find_exponent<std::uint64_t, 0x7ff0000000000000>(elements);
    case DType::f32: return find_exponent<std::uint32_t, 0x7f800000>(elements);
    case DType::f16: return find_exponent<std::uint16_t, 0x7c00>(elements);
    case DType::bf16: return find_exponent<std::uint16_t, 0x7f80>(elements);
    case DType::complex64: return find_exponent<std::uint32_t, 0x7f800000>(elements);
    case DType::complex128: return find_exponent<std::uint64_t, 0x7ff0000000000000>(elements);
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f8_e8m0: return find_in_table(dtype, elements);
    case DType::boolean: return find<std::uint8_t>(elements, [](std::uint8_t value) { return value > 1; });
    default: return std::nullopt;
  }
}

const char* bad_value_name(DType dtype) { return dtype == DType::boolean ? "neither 0 nor 1" : "not finite"; }

}  // namespace poise
