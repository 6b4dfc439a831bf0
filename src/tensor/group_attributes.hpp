// The attributes of zt.quant_group/1 for codes as other formats store them.
#pragma once

#include <cstdint>
#include <optional>

#include <poise/value.hpp>

namespace poise {

// Of codes of 8 bits, one a byte, with floating-point scales: `group_size` codes along `axis` share one; 0: all codes
// with the same index along it. `zero`: the zero point of all codes; nothing if the part zeros has one for each group.
inline Attributes byte_code_attributes(std::uint64_t group_size, std::uint64_t axis, std::optional<std::int64_t> zero) {
  return {{"bits", 8},
          {"group_size", group_size},
          {"axis", axis},
          {"packing", Attributes{{"word", "u8"}, {"order", "lsb_first"}, {"per_word", 1}}},
          {"scale_form", "f32_factors"},
          {"zero_point", zero ? Attributes{{"form", "implied"}, {"value", *zero}}
                              : Attributes{{"form", "tensor"}, {"packing", "plain"}}}};
}

}  // namespace poise
