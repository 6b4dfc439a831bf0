// The names of element types in the versions of zTensor (docs/formats/ztensor.md).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "formats/spellings.hpp"

namespace poise::ztensor {

// zTensor 0.1 and 1.0.
inline constexpr std::array kSpellings0 = {
    Spelling<std::string_view>{DType::f64, "float64"},  Spelling<std::string_view>{DType::f32, "float32"},
    Spelling<std::string_view>{DType::f16, "float16"},  Spelling<std::string_view>{DType::bf16, "bfloat16"},
    Spelling<std::string_view>{DType::i64, "int64"},    Spelling<std::string_view>{DType::i32, "int32"},
    Spelling<std::string_view>{DType::i16, "int16"},    Spelling<std::string_view>{DType::i8, "int8"},
    Spelling<std::string_view>{DType::u64, "uint64"},   Spelling<std::string_view>{DType::u32, "uint32"},
    Spelling<std::string_view>{DType::u16, "uint16"},   Spelling<std::string_view>{DType::u8, "uint8"},
    Spelling<std::string_view>{DType::boolean, "bool"},
};

// zTensor 1.1 and 1.2.
inline constexpr std::array kSpellings1 = {
    Spelling<std::string_view>{DType::f64, "f64"},
    Spelling<std::string_view>{DType::f32, "f32"},
    Spelling<std::string_view>{DType::f16, "f16"},
    Spelling<std::string_view>{DType::bf16, "bf16"},
    Spelling<std::string_view>{DType::f8_e4m3, "f8_e4m3"},
    Spelling<std::string_view>{DType::f8_e5m2, "f8_e5m2"},
    Spelling<std::string_view>{DType::complex64, "complex64"},
    Spelling<std::string_view>{DType::complex128, "complex128"},
    Spelling<std::string_view>{DType::i64, "i64"},
    Spelling<std::string_view>{DType::i32, "i32"},
    Spelling<std::string_view>{DType::i16, "i16"},
    Spelling<std::string_view>{DType::i8, "i8"},
    Spelling<std::string_view>{DType::u64, "u64"},
    Spelling<std::string_view>{DType::u32, "u32"},
    Spelling<std::string_view>{DType::u16, "u16"},
    Spelling<std::string_view>{DType::u8, "u8"},
    Spelling<std::string_view>{DType::boolean, "bool"},
};

// zTensor 2: a plain type, and the logical type over it if the elements have another (else empty).
struct StorageType {
  std::string_view storage;
  std::string_view logical;
  friend bool operator==(const StorageType&, const StorageType&) = default;
};
inline constexpr std::array kSpellings2 = {
    Spelling<StorageType>{DType::f64, StorageType{"f64", ""}},
    Spelling<StorageType>{DType::f32, StorageType{"f32", ""}},
    Spelling<StorageType>{DType::f16, StorageType{"f16", ""}},
    Spelling<StorageType>{DType::bf16, StorageType{"bf16", ""}},
    Spelling<StorageType>{DType::f8_e4m3, StorageType{"u8", "f8_e4m3fn"}},
    Spelling<StorageType>{DType::f8_e5m2, StorageType{"u8", "f8_e5m2"}},
    Spelling<StorageType>{DType::f8_e4m3fnuz, StorageType{"u8", "f8_e4m3fnuz"}},
    Spelling<StorageType>{DType::f8_e5m2fnuz, StorageType{"u8", "f8_e5m2fnuz"}},
    Spelling<StorageType>{DType::f8_e8m0, StorageType{"u8", "f8_e8m0"}},
    Spelling<StorageType>{DType::f4_e2m1, StorageType{"u8", "f4_e2m1"}},
    Spelling<StorageType>{DType::complex64, StorageType{"f32", "complex64"}},
    Spelling<StorageType>{DType::complex128, StorageType{"f64", "complex128"}},
    Spelling<StorageType>{DType::i64, StorageType{"i64", ""}},
    Spelling<StorageType>{DType::i32, StorageType{"i32", ""}},
    Spelling<StorageType>{DType::i16, StorageType{"i16", ""}},
    Spelling<StorageType>{DType::i8, StorageType{"i8", ""}},
    Spelling<StorageType>{DType::u64, StorageType{"u64", ""}},
    Spelling<StorageType>{DType::u32, StorageType{"u32", ""}},
    Spelling<StorageType>{DType::u16, StorageType{"u16", ""}},
    Spelling<StorageType>{DType::u8, StorageType{"u8", ""}},
    Spelling<StorageType>{DType::boolean, StorageType{"u8", "bool"}},
};

// The type of `storage` with that logical type.
inline std::optional<DType> dtype_from_storage(std::string_view storage, std::string_view logical) {
  return dtype_spelled(kSpellings2, StorageType{storage, logical});
}

}  // namespace poise::ztensor
