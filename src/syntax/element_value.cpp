#include "syntax/element_value.hpp"

#include "bytes/little_endian.hpp"
#include "numeric/float_formats.hpp"

namespace poise {
namespace {

template <typename Part>
Value read_complex(const std::byte* at) {
  return Value::Array{static_cast<double>(load_le<Part>(at)), static_cast<double>(load_le<Part>(at + sizeof(Part)))};
}

template <typename Integer>
Value read_integer(const std::byte* at) {
  if constexpr (std::is_signed_v<Integer>) return static_cast<std::int64_t>(load_le<Integer>(at));
  return static_cast<std::uint64_t>(load_le<Integer>(at));
}

}  // namespace

std::optional<Value> read_element(DType dtype, std::span<const std::byte> bytes) {
  if (dtype == DType::unknown || info(dtype).bits != 8 * bytes.size()) return std::nullopt;
  const std::byte* const at = bytes.data();
  switch (dtype) {
    case DType::f64: return Value(load_le<double>(at));
    case DType::f32: return Value(static_cast<double>(load_le<float>(at)));
    case DType::f16:
    case DType::bf16: return Value(static_cast<double>(decode_float(dtype, load_le<std::uint16_t>(at))));
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz: return Value(static_cast<double>(decode_float(dtype, load_le<std::uint8_t>(at))));
    case DType::complex64: return read_complex<float>(at);
    case DType::complex128: return read_complex<double>(at);
    case DType::i64: return read_integer<std::int64_t>(at);
    case DType::i32: return read_integer<std::int32_t>(at);
    case DType::i16: return read_integer<std::int16_t>(at);
    case DType::i8: return read_integer<std::int8_t>(at);
    case DType::u64: return read_integer<std::uint64_t>(at);
    case DType::u32: return read_integer<std::uint32_t>(at);
    case DType::u16: return read_integer<std::uint16_t>(at);
    case DType::u8: return read_integer<std::uint8_t>(at);
    case DType::boolean: return Value(bytes[0] != std::byte{0});
    default: return std::nullopt;
  }
}

}  // namespace poise
