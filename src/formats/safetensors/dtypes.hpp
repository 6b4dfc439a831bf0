// The names of element types in safetensors (docs/formats/safetensors.md).
#pragma once

#include <array>
#include <string_view>

#include "formats/spellings.hpp"

namespace poise {

inline constexpr std::array kSafetensorsSpellings = {
    Spelling<std::string_view>{DType::f64, "F64"},         Spelling<std::string_view>{DType::f32, "F32"},
    Spelling<std::string_view>{DType::f16, "F16"},         Spelling<std::string_view>{DType::bf16, "BF16"},
    Spelling<std::string_view>{DType::f8_e4m3, "F8_E4M3"}, Spelling<std::string_view>{DType::f8_e5m2, "F8_E5M2"},
    Spelling<std::string_view>{DType::f8_e8m0, "F8_E8M0"}, Spelling<std::string_view>{DType::f4_e2m1, "F4"},
    Spelling<std::string_view>{DType::complex64, "C64"},   Spelling<std::string_view>{DType::i64, "I64"},
    Spelling<std::string_view>{DType::i32, "I32"},         Spelling<std::string_view>{DType::i16, "I16"},
    Spelling<std::string_view>{DType::i8, "I8"},           Spelling<std::string_view>{DType::u64, "U64"},
    Spelling<std::string_view>{DType::u32, "U32"},         Spelling<std::string_view>{DType::u16, "U16"},
    Spelling<std::string_view>{DType::u8, "U8"},           Spelling<std::string_view>{DType::boolean, "BOOL"},
};

}  // namespace poise
