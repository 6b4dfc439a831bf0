// Group quantization: integer codes packed into words, with a scale and perhaps a zero point for each group of codes.
//
//   value = (code - zero) * scale
//
// zTensor 1.1's `quantized_group` and zTensor 2's `zt.quant_group/1` describe it with different attributes; both are read
// into a GroupScheme. The parts are packed_weight, scales and, where the scheme has them, zeros.
#pragma once

#include <cstdint>
#include <string_view>

#include <poise/tensor.hpp>

namespace poise {

struct GroupScheme {
  enum class Zeros : std::uint8_t {
    none,    // every zero point is 0
    fixed,   // every zero point is `zero`
    plain,   // one element per group
    packed,  // one code per group, packed like the codes
  };

  unsigned bits = 0;             // 1 to 8; 2, 4 or 8 in version 2
  std::uint64_t group_size = 0;  // codes along the axis that share a scale; 0: all codes with one index along the axis do
  std::size_t axis = 0;
  std::size_t packing_axis = 0;  // neighbours along it share a word; the last axis means flat row-major order
  DType word = DType::unknown;   // an integer type
  unsigned per_word = 0;
  bool high_bits_first = false;  // the code with the lowest index fills the word's high bits
  bool power_of_two = false;     // a scale is a byte e that stands for 2^(e - 127)
  Zeros zeros = Zeros::none;
  std::int64_t zero = 0;

  friend bool operator==(const GroupScheme&, const GroupScheme&) = default;
};

inline constexpr std::string_view kQuantGroup = "zt.quant_group/1";

// Do the attributes follow zt.quant_group/1, not zTensor 1.1? Errors then call the codes data.
bool is_described_as_in_version_2(const Tensor& tensor);

// Reads the scheme from a tensor's attributes. Throws invalid_file (without path) naming tensor and attribute when they
// make no sense, or do not fit the shape or the parts' types and sizes; looks at no data. Requires: Layout::quantized_group.
GroupScheme group_scheme(const Tensor& tensor);

// True when codes of equal bytes mean equal numbers, however the two are spelled. Requires: of tensors of one shape.
bool same_meaning(GroupScheme a, GroupScheme b);

// True for the attributes that a scheme is read from.
bool spells_group_scheme(std::string_view attribute);

}  // namespace poise
