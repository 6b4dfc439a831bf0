// Reads the codes of qint8 and qint4 tensors: unpacks them from bytes, and decodes them to numbers.
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

  // Returns the largest code of a symmetric tensor, 7 or 127. The smallest code in use is its negative.
  int get_largest_symmetric() const { return (1 << (bits - 1)) - 1; }
  int get_largest_unsigned() const { return (1 << bits) - 1; }
  std::uint64_t count_bytes(std::uint64_t elements) const { return packed ? elements / 2 + elements % 2 : elements; }
};

// Requires: dtype is qint8 or qint4.
CodeFormat get_code_format(DType dtype, const Affine& affine);

// Unpacks codes [first, first + codes.size()). The first byte of `bytes` has code `first`.
void unpack_codes(const CodeFormat& format, std::uint64_t first, std::span<const std::byte> bytes,
                  std::span<std::int16_t> codes);

// Decodes each code q to the number q * delta or, if the tensor has a range, min + q * delta.
void decode_codes(const Affine& affine, std::span<const std::int16_t> codes, std::span<float> out);

// Describes the first code that does not fit four bits, in a tensor with a byte for each code.
struct BadCode {
  std::uint64_t element;
  std::byte byte;
};
std::optional<BadCode> find_bad_code(const CodeFormat& format, std::span<const std::byte> bytes);
// Returns a message such as "element 7: the code 200 does not fit 4 bits". `first` is the index of the first code that
// was checked.
std::string to_string(const BadCode& bad, std::uint64_t first);

// Returns faults of delta, min and max as messages: "delta is nan, expected a finite number of at least 0".
std::vector<std::string> list_problems(const Affine& affine);

}  // namespace poise
