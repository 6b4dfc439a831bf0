#include "codec/affine.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {
namespace {

// Sign-extends the low `bits` bits of a code. Ignores its other bits.
std::int16_t sign_extend(unsigned code, unsigned bits) {
  const unsigned sign = 1U << (bits - 1);
  code &= (1U << bits) - 1;
  return static_cast<std::int16_t>(static_cast<int>(code ^ sign) - static_cast<int>(sign));
}

std::int16_t decode_byte(const CodeFormat& format, unsigned byte) {
  return format.is_unsigned ? static_cast<std::int16_t>(byte & static_cast<unsigned>(format.get_largest_unsigned()))
                            : sign_extend(byte, format.bits);
}

}  // namespace

CodeFormat get_code_format(DType dtype, const Affine& affine) {
  if (dtype != DType::qint8 && dtype != DType::qint4)
    throw Error(ErrorKind::internal, fmt::format("{} has no codes", to_string(dtype)));
  return {info(dtype).bits, affine.ranged(), dtype == DType::qint4 && affine.packed};
}

void unpack_codes(const CodeFormat& format, std::uint64_t first, std::span<const std::byte> bytes,
                  std::span<std::int16_t> codes) {
  if (!format.packed) {
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = decode_byte(format, std::to_integer<unsigned>(bytes[i]));
    return;
  }
  const std::size_t odd = first % 2;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(bytes[(odd + i) / 2]);
    codes[i] = decode_byte(format, (odd + i) % 2 == 0 ? byte & 0x0f : byte >> 4);
  }
}

void decode_codes(const Affine& affine, std::span<const std::int16_t> codes, std::span<float> out) {
  if (affine.ranged()) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      out[i] = static_cast<float>(static_cast<double>(affine.min) +
                                  static_cast<double>(codes[i]) * static_cast<double>(affine.delta));
    }
    return;
  }
  for (std::size_t i = 0; i < codes.size(); ++i) out[i] = static_cast<float>(codes[i]) * affine.delta;
}

std::optional<BadCode> find_bad_code(const CodeFormat& format, std::span<const std::byte> bytes) {
  if (format.bits == 8 || format.packed) return std::nullopt;
  const auto fits = [&](std::byte byte) {
    const auto code = std::to_integer<unsigned>(byte);
    return format.is_unsigned ? code <= static_cast<unsigned>(format.get_largest_unsigned())
                              : sign_extend(code, 4) == sign_extend(code, 8);
  };
  const auto bad = std::ranges::find_if_not(bytes, fits);
  if (bad == bytes.end()) return std::nullopt;
  return BadCode{static_cast<std::uint64_t>(bad - bytes.begin()), *bad};
}

std::string to_string(const BadCode& bad, std::uint64_t first) {
  return fmt::format("element {}: the code {} does not fit 4 bits", first + bad.element,
                     std::to_integer<unsigned>(bad.byte));
}

std::vector<std::string> list_problems(const Affine& affine) {
  std::vector<std::string> problems;
  const auto shown = [](float number) { return std::isnan(number) ? std::abs(number) : number; };  // avoids "-nan"
  if (!std::isfinite(affine.delta) || affine.delta < 0) {
    problems.push_back(fmt::format("delta is {}, expected a finite number of at least 0", shown(affine.delta)));
  }
  if (!std::isfinite(affine.min) || !std::isfinite(affine.max)) {
    problems.push_back(
        fmt::format("min and max are {} and {}, expected finite numbers", shown(affine.min), shown(affine.max)));
  }
  return problems;
}

}  // namespace poise
