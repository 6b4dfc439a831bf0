// Describes group quantization: integer codes are packed into words, and each group of codes has a scale and perhaps a
// zero point.
//
//   value = (code - zero) * scale
//
// zTensor 1.1's `quantized_group` and zTensor 2's `zt.quant_group/1` describe it with different attributes. A
// GroupScheme holds either. The parts are packed_weight, scales and, where the scheme has them, zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// Names the version of zTensor whose attributes describe the scheme.
enum class GroupWords : std::uint8_t {
  zt1,  // quantized_group: "packing": "8_per_i32", ...
  zt2,  // zt.quant_group/1: "packing": {"word": "u32", ...}, ...
};

struct GroupScheme {
  enum class Zeros : std::uint8_t {
    none,    // every zero point is 0
    fixed,   // every zero point is `zero`
    plain,   // one element per group
    packed,  // one code per group, packed like the codes
  };

  unsigned bits = 0;  // 1 to 8; 2, 4 or 8 in version 2
  // This many codes along the axis share a scale; 0: all codes with the same index along the axis do.
  std::uint64_t group_size = 0;
  std::size_t axis = 0;
  std::size_t packing_axis = 0;  // neighbours along it share a word; if it is the last axis, words may span rows
  DType word = DType::unknown;   // an integer type
  unsigned per_word = 0;
  bool high_bits_first = false;  // the code with the lowest index fills the word's high bits
  bool power_of_two = false;     // a scale is a byte e, which means 2^(e - 127)
  Zeros zeros = Zeros::none;
  std::int64_t zero = 0;
  GroupWords words = GroupWords::zt1;

  friend bool operator==(const GroupScheme&, const GroupScheme&) = default;
};

inline constexpr std::string_view kQuantGroup = "zt.quant_group/1";

// Reads the scheme from a tensor's attributes. Throws invalid_file (without path), which names tensor and attribute, if
// an attribute is invalid or does not fit the shape. Messages call the part with the codes by its name in the version
// `words`: packed_weight or data. In zTensor 2, a group_size of 0 has two meanings, which the number of scales decides.
GroupScheme read_group_scheme(const Tensor& tensor, GroupWords words);

// Throws invalid_file (without path), which names tensor and part, if a part is missing or unknown, or has a wrong type
// or size. Reads no data. Requires: get_group_scheme(tensor.layout) is not null.
void check_group_parts(const Tensor& tensor);

// Returns the number of decoded bytes that shape and scheme require of a part; std::nullopt if the tensor has no
// scheme, or its scheme does not have this part.
std::optional<std::uint64_t> find_group_part_bytes(const Tensor& tensor, const Part& part);

// Makes the layout. `scheme` is std::nullopt if Poise does not know the type of a part.
TensorLayout make_group_layout(std::optional<GroupScheme> scheme);
// Returns the scheme of a layout; null for other layouts, and for a layout that was made without a scheme.
const GroupScheme* get_group_scheme(const TensorLayout& layout);

// Returns true if equal parts mean equal numbers in both schemes. Requires: both belong to tensors of one shape.
bool have_same_meaning(GroupScheme a, GroupScheme b);

// Returns true for the attributes that read_group_scheme() reads.
bool is_group_scheme_attribute(std::string_view attribute);

// Returns the attributes of zt.quant_group/1 for codes of 8 bits, one a byte, with floating-point scales, as other
// formats store them. `group_size` codes along `axis` share a scale; 0 means all codes with the same index along it.
// `zero` is the zero point of all codes, or std::nullopt if the part zeros has one for each group.
inline Attributes make_byte_code_attributes(std::uint64_t group_size, std::uint64_t axis,
                                            std::optional<std::int64_t> zero) {
  return {{"bits", 8},
          {"group_size", group_size},
          {"axis", axis},
          {"packing", Attributes{{"word", "u8"}, {"order", "lsb_first"}, {"per_word", 1}}},
          {"scale_form", "f32_factors"},
          {"zero_point", zero ? Attributes{{"form", "implied"}, {"value", *zero}}
                              : Attributes{{"form", "tensor"}, {"packing", "plain"}}}};
}

}  // namespace poise
