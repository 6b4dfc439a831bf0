#include "tensor/scan.hpp"

#include <array>
#include <cmath>

#include "bytes/little_endian.hpp"
#include "tensor/float_formats.hpp"

namespace poise {
namespace {

// Counts without branches, so that the compiler makes vectors of the loop; the first is searched for only where there is one.
template <typename Word, typename IsBad>
BadValues find(std::span<const std::byte> bytes, IsBad is_bad) {
  const std::size_t count = bytes.size() / sizeof(Word);
  const auto bad = [&](std::size_t i) { return is_bad(load_le<Word>(bytes.data() + i * sizeof(Word))); };
  BadValues result;
  for (std::size_t i = 0; i < count; ++i) result.count += bad(i) ? 1 : 0;
  if (result.count == 0) return result;
  while (!bad(result.first)) ++result.first;
  return result;
}

// In IEEE formats infinities and NaN are the codes with all exponent bits set.
template <typename Word, Word exponent>
BadValues find_exponent(std::span<const std::byte> bytes) {
  return find<Word>(bytes, [](Word word) { return (word & exponent) == exponent; });
}

// An element is bad when its real or its imaginary part is.
template <typename Word, Word exponent>
BadValues find_complex(std::span<const std::byte> bytes) {
  struct Complex {
    Word real;
    Word imaginary;
  };
  return find<Complex>(bytes, [](Complex value) { return (value.real & exponent) == exponent || (value.imaginary & exponent) == exponent; });
}

BadValues find_in_table(DType dtype, std::span<const std::byte> bytes) {
  std::array<bool, 256> bad{};
  for (std::uint32_t code = 0; code < bad.size(); ++code) bad[code] = !std::isfinite(decode_float(dtype, code));
  return find<std::uint8_t>(bytes, [&](std::uint8_t code) { return bad[code]; });
}

}  // namespace

BadValues find_bad_values(DType dtype, std::span<const std::byte> elements) {
  switch (dtype) {
    case DType::f64: return find_exponent<std::uint64_t, 0x7ff0000000000000>(elements);
    case DType::f32: return find_exponent<std::uint32_t, 0x7f800000>(elements);
    case DType::f16: return find_exponent<std::uint16_t, 0x7c00>(elements);
    case DType::bf16: return find_exponent<std::uint16_t, 0x7f80>(elements);
    case DType::complex64: return find_complex<std::uint32_t, 0x7f800000>(elements);
    case DType::complex128: return find_complex<std::uint64_t, 0x7ff0000000000000>(elements);
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f8_e8m0: return find_in_table(dtype, elements);
    case DType::boolean: return find<std::uint8_t>(elements, [](std::uint8_t value) { return value > 1; });
    default: return {};
  }
}

const char* bad_value_name(DType dtype) { return dtype == DType::boolean ? "neither 0 nor 1" : "not finite"; }

}  // namespace poise
