// The names of element types in safetensors (docs/formats/safetensors.md).
//
// Source: enum Dtype in tensor.rs of the safetensors library, version 0.8.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <poise/dtype.hpp>

namespace poise::safetensors {

struct ElementType {
  std::string_view name;
  DType dtype;
  unsigned own_bits = 0;  // of an element, where `dtype` is unknown

  constexpr bool is_known() const { return dtype != DType::unknown; }
  unsigned bits() const { return is_known() ? info(dtype).bits : own_bits; }
};

// The library does not say in which order three bytes hold four elements of six bits: these are carried.
inline constexpr std::array kElementTypes = std::to_array<ElementType>({
    {"F64", DType::f64},
    {"F32", DType::f32},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"F8_E4M3", DType::f8_e4m3},
    {"F8_E5M2", DType::f8_e5m2},
    {"F8_E4M3FNUZ", DType::f8_e4m3fnuz},
    {"F8_E5M2FNUZ", DType::f8_e5m2fnuz},
    {"F8_E8M0", DType::f8_e8m0},
    {"F6_E2M3", DType::unknown, 6},
    {"F6_E3M2", DType::unknown, 6},
    {"F4", DType::f4_e2m1},
    {"C64", DType::complex64},
    {"I64", DType::i64},
    {"I32", DType::i32},
    {"I16", DType::i16},
    {"I8", DType::i8},
    {"U64", DType::u64},
    {"U32", DType::u32},
    {"U16", DType::u16},
    {"U8", DType::u8},
    {"BOOL", DType::boolean},
});

// Null: there is no such type.
inline const ElementType* type_named(std::string_view name) {
  const auto* const row = std::ranges::find(kElementTypes, name, &ElementType::name);
  return row == kElementTypes.end() ? nullptr : row;
}
inline const ElementType* type_of(DType dtype) {
  const auto* const row = std::ranges::find(kElementTypes, dtype, &ElementType::dtype);
  return row == kElementTypes.end() || !row->is_known() ? nullptr : row;
}

}  // namespace poise::safetensors
