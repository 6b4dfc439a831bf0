// Tensor types by ggml's numbers: plain elements here, blocks in codec/block_type.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/spellings.hpp"

namespace poise::gguf {

inline constexpr std::array kSpellings = {
    Spelling<std::uint32_t>{DType::f32, 0},  Spelling<std::uint32_t>{DType::f16, 1},
    Spelling<std::uint32_t>{DType::i8, 24},  Spelling<std::uint32_t>{DType::i16, 25},
    Spelling<std::uint32_t>{DType::i32, 26}, Spelling<std::uint32_t>{DType::i64, 27},
    Spelling<std::uint32_t>{DType::f64, 28}, Spelling<std::uint32_t>{DType::bf16, 30},
};

// Types that ggml removed. Files with them are too old.
struct RemovedType {
  std::uint32_t number;
  std::string_view name;
};
inline constexpr std::array kRemovedTypes = {
    RemovedType{4, "q4_2"},        RemovedType{5, "q4_3"},        RemovedType{31, "q4_0_4_4"},
    RemovedType{32, "q4_0_4_8"},   RemovedType{33, "q4_0_8_8"},   RemovedType{36, "iq4_nl_4_4"},
    RemovedType{37, "iq4_nl_4_8"}, RemovedType{38, "iq4_nl_8_8"},
};

// The bytes of that many elements, which are whole blocks; nothing for unknown types, or on overflow of 64 bits.
std::optional<std::uint64_t> stored_bytes(std::uint32_t type, std::uint64_t elements);

}  // namespace poise::gguf
