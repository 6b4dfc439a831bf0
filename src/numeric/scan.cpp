#include "numeric/scan.hpp"

#include "bytes/little_endian.hpp"

namespace poise {
namespace {

constexpr std::size_t kBlock = 128;  // elements; a counter of one byte can hold their number

// Counts bad elements, and finds the first one. The counting loop has no branches, and its counter is as wide as a
// number (a complex element has two numbers), so that the compiler vectorizes it.
template <typename Word, typename Counter = Word, typename IsBad>
BadValues find_bad_elements(std::span<const std::byte> bytes, IsBad is_bad) {
  const std::size_t count = bytes.size() / sizeof(Word);
  const auto bad = [&](std::size_t i) { return is_bad(load_le<Word>(bytes.data() + i * sizeof(Word))); };
  BadValues result;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    Counter in_block = 0;
    if (count - begin >= kBlock) {
      for (std::size_t i = 0; i < kBlock; ++i) in_block = static_cast<Counter>(in_block + (bad(begin + i) ? 1 : 0));
    } else {
      for (std::size_t i = begin; i < count; ++i) in_block = static_cast<Counter>(in_block + (bad(i) ? 1 : 0));
    }
    result.count += in_block;
  }
  if (result.count == 0) return result;
  while (!bad(result.first)) ++result.first;
  return result;
}

// Finds infinities and NaN of IEEE formats: codes with all exponent bits set.
template <typename Word, Word exponent>
BadValues find_not_finite(std::span<const std::byte> bytes) {
  return find_bad_elements<Word>(bytes, [](Word word) { return (word & exponent) == exponent; });
}

template <typename Word, Word exponent>
BadValues find_not_finite_complex(std::span<const std::byte> bytes) {
  struct Complex {
    Word real;
    Word imaginary;
  };
  return find_bad_elements<Complex, Word>(bytes, [](Complex value) {
    return (value.real & exponent) == exponent || (value.imaginary & exponent) == exponent;
  });
}

// Finds bad bytes: those whose bits under the mask are all set.
BadValues find_set_bits(std::uint8_t mask, std::span<const std::byte> bytes) {
  return find_bad_elements<std::uint8_t>(bytes, [=](std::uint8_t code) { return (code & mask) == mask; });
}

BadValues find_code(std::uint8_t bad, std::span<const std::byte> bytes) {
  return find_bad_elements<std::uint8_t>(bytes, [=](std::uint8_t code) { return code == bad; });
}

}  // namespace

BadValues find_bad_values(DType dtype, std::span<const std::byte> elements) {
  switch (dtype) {
    case DType::f64: return find_not_finite<std::uint64_t, 0x7ff0000000000000>(elements);
    case DType::f32: return find_not_finite<std::uint32_t, 0x7f800000>(elements);
    case DType::f16: return find_not_finite<std::uint16_t, 0x7c00>(elements);
    case DType::bf16: return find_not_finite<std::uint16_t, 0x7f80>(elements);
    case DType::complex64: return find_not_finite_complex<std::uint32_t, 0x7f800000>(elements);
    case DType::complex128: return find_not_finite_complex<std::uint64_t, 0x7ff0000000000000>(elements);
    case DType::f8_e4m3: return find_set_bits(0x7f, elements);  // NaN; there are no infinities
    case DType::f8_e5m2: return find_set_bits(0x7c, elements);
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz: return find_code(0x80, elements);  // NaN has the code that -0 has in IEEE formats
    case DType::f8_e8m0: return find_code(0xff, elements);
    case DType::boolean: return find_bad_elements<std::uint8_t>(elements, [](std::uint8_t value) { return value > 1; });
    default: return {};
  }
}

const char* describe_bad_value(DType dtype) { return dtype == DType::boolean ? "neither 0 nor 1" : "not finite"; }

}  // namespace poise
