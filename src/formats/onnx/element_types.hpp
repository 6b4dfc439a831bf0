// TensorProto.DataType: the element types of ONNX, and the field that holds such elements where they are not raw bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <poise/dtype.hpp>

namespace poise::onnx {

// Fields of a TensorProto, by their numbers there.
enum class ListField : std::uint8_t {
  none = 0,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  double_data = 10,
  uint64_data = 11,
};

struct ElementType {
  std::uint64_t number;
  std::string_view name;
  DType dtype;  // unknown: Poise has no such type
  unsigned bits;
  ListField field;
  bool is_signed;  // of integers in a list
};

inline constexpr std::array kElementTypes = std::to_array<ElementType>({
    {1, "FLOAT", DType::f32, 32, ListField::float_data, false},
    {2, "UINT8", DType::u8, 8, ListField::int32_data, false},
    {3, "INT8", DType::i8, 8, ListField::int32_data, true},
    {4, "UINT16", DType::u16, 16, ListField::int32_data, false},
    {5, "INT16", DType::i16, 16, ListField::int32_data, true},
    {6, "INT32", DType::i32, 32, ListField::int32_data, true},
    {7, "INT64", DType::i64, 64, ListField::int64_data, true},
    {9, "BOOL", DType::boolean, 8, ListField::int32_data, false},
    {10, "FLOAT16", DType::f16, 16, ListField::int32_data, false},
    {11, "DOUBLE", DType::f64, 64, ListField::double_data, false},
    {12, "UINT32", DType::u32, 32, ListField::uint64_data, false},
    {13, "UINT64", DType::u64, 64, ListField::uint64_data, false},
    {14, "COMPLEX64", DType::complex64, 64, ListField::float_data, false},
    {15, "COMPLEX128", DType::complex128, 128, ListField::double_data, false},
    {16, "BFLOAT16", DType::bf16, 16, ListField::int32_data, false},
    {17, "FLOAT8E4M3FN", DType::f8_e4m3, 8, ListField::int32_data, false},
    {18, "FLOAT8E4M3FNUZ", DType::f8_e4m3fnuz, 8, ListField::int32_data, false},
    {19, "FLOAT8E5M2", DType::f8_e5m2, 8, ListField::int32_data, false},
    {20, "FLOAT8E5M2FNUZ", DType::f8_e5m2fnuz, 8, ListField::int32_data, false},
    {21, "UINT4", DType::unknown, 4, ListField::int32_data, false},
    {22, "INT4", DType::unknown, 4, ListField::int32_data, false},
    {23, "FLOAT4E2M1", DType::f4_e2m1, 4, ListField::int32_data, false},
    {24, "FLOAT8E8M0", DType::f8_e8m0, 8, ListField::int32_data, false},
    {25, "UINT2", DType::unknown, 2, ListField::int32_data, false},
    {26, "INT2", DType::unknown, 2, ListField::int32_data, false},
});
inline constexpr std::uint64_t kText = 8;  // STRING

// Null: not known.
inline const ElementType* element_type(std::uint64_t number) {
  const auto* const row = std::ranges::find(kElementTypes, number, &ElementType::number);
  return row == kElementTypes.end() ? nullptr : row;
}

}  // namespace poise::onnx
