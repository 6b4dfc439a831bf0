// Reads the codes of qint8 and qint4 tensors: unpacks them from bytes, checks them, and decodes them to numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poise/affine.hpp>
#include <poise/dtype.hpp>

namespace poise {

// Describes the codes of one tensor, without their scale.
struct CodeFormat {
  unsigned bits;     // 4 or 8
  bool is_unsigned;  // true if the tensor has a range (min, max): codes are 0 to 15 or 0 to 255; else two's complement
  bool packed;       // two codes to a byte, the element with the even index in the low half

  // Returns the largest two's complement code, 7 or 127. Encoders do not use the smallest one, -8 or -128.
  int get_largest_symmetric() const { return (1 << (bits - 1)) - 1; }
  int get_largest_unsigned() const { return (1 << bits) - 1; }
  std::uint64_t count_bytes(std::uint64_t elements) const { return packed ? elements / 2 + elements % 2 : elements; }
};

// Returns how a tensor of this type and scale stores its codes. Throws internal for types other than qint8 and qint4.
CodeFormat get_code_format(DType dtype, const Affine& affine);

// Unpacks codes [first, first + codes.size()) of a tensor. `bytes` begins with the byte that holds code `first`.
void unpack_codes(const CodeFormat& format, std::uint64_t first, std::span<const std::byte> bytes,
                  std::span<std::int16_t> codes);

// Decodes each code q to the number q * delta or, if the tensor has a range, min + q * delta.
void decode_codes(const Affine& affine, std::span<const std::int16_t> codes, std::span<float> out);

// Describes a code that has a byte of its own and does not fit four bits.
struct BadCode {
  std::uint64_t element;  // its index among the codes that were checked
  std::byte byte;
};
// Returns the first bad code; std::nullopt if there is none, as in every tensor of 8-bit or packed codes.
std::optional<BadCode> find_bad_code(const CodeFormat& format, std::span<const std::byte> bytes);
// Returns a message such as "element 7: the code 200 does not fit 4 bits". `first` is the index of the first code that
// was checked.
std::string to_string(const BadCode& bad, std::uint64_t first);

// Returns faults of delta, min and max as messages: "delta is nan, expected a finite number of at least 0".
std::vector<std::string> list_problems(const Affine& affine);

}  // namespace poise
