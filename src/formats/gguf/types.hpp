// Lists ggml's numbers of tensor types. Plain elements are here, blocks in codec/block_type.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <poise/blob.hpp>

#include "codec/block_type.hpp"
#include "formats/spellings.hpp"

namespace poise::gguf {

inline constexpr std::array kSpellings = {
    Spelling<std::uint32_t>{DType::f32, 0},  Spelling<std::uint32_t>{DType::f16, 1},
    Spelling<std::uint32_t>{DType::i8, 24},  Spelling<std::uint32_t>{DType::i16, 25},
    Spelling<std::uint32_t>{DType::i32, 26}, Spelling<std::uint32_t>{DType::i64, 27},
    Spelling<std::uint32_t>{DType::f64, 28}, Spelling<std::uint32_t>{DType::bf16, 30},
};

// Names a type that ggml removed. Poise lists tensors of such types, but cannot decode them.
struct RemovedType {
  std::uint32_t number;
  std::string_view name;
};
inline constexpr std::array kRemovedTypes = {
    RemovedType{4, "q4_2"},        RemovedType{5, "q4_3"},        RemovedType{31, "q4_0_4_4"},
    RemovedType{32, "q4_0_4_8"},   RemovedType{33, "q4_0_8_8"},   RemovedType{36, "iq4_nl_4_4"},
    RemovedType{37, "iq4_nl_4_8"}, RemovedType{38, "iq4_nl_8_8"},
};

// Returns the name of a type: "f16", "q4_k"; empty for unknown types.
std::string_view find_type_name(std::uint32_t type);

// Returns the number of bytes of that many elements; std::nullopt for unknown types, or if 64 bits overflow. Requires:
// the elements are whole blocks.
std::optional<std::uint64_t> count_stored_bytes(std::uint32_t type, std::uint64_t elements);

// Holds a number of general.file_type (llama_ftype in llama.h, v0.5.0), its name, and the type of most tensors
// (llama-quant.cpp). If several rows have one type, the first is the usual one.
struct FileType {
  std::uint32_t number;
  std::string_view name;
  std::uint32_t type;
};
inline constexpr std::array kFileTypes = std::to_array<FileType>({
    {0, "f32", 0},       {1, "f16", 1},      {2, "q4_0", 2},      {3, "q4_1", 3},     {7, "q8_0", 8},
    {8, "q5_0", 6},      {9, "q5_1", 7},     {10, "q2_k", 10},    {21, "q2_k_s", 10}, {12, "q3_k_m", 11},
    {11, "q3_k_s", 11},  {13, "q3_k_l", 11}, {15, "q4_k_m", 12},  {14, "q4_k_s", 12}, {17, "q5_k_m", 13},
    {16, "q5_k_s", 13},  {18, "q6_k", 14},   {19, "iq2_xxs", 16}, {20, "iq2_xs", 17}, {28, "iq2_s", 17},
    {23, "iq3_xxs", 18}, {24, "iq1_s", 19},  {25, "iq4_nl", 20},  {26, "iq3_s", 21},  {22, "iq3_xs", 21},
    {27, "iq3_m", 21},   {29, "iq2_m", 22},  {30, "iq4_xs", 23},  {31, "iq1_m", 29},  {32, "bf16", 30},
    {36, "tq1_0", 34},   {37, "tq2_0", 35},  {38, "mxfp4", 39},   {39, "nvfp4", 40},  {40, "q1_0", 41},
    {41, "q2_0", 42},
});

// Returns the name of a file type: the name of Poise's recipe ("q4_k_m"), or "llama_ftype 43" for an unknown one.
std::string find_file_type_name(std::uint32_t number);

// Describes a matrix of a file. `type` is ggml's number.
struct TypedMatrix {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t elements;
};

// Returns llama.cpp's number of the recipe. If it has none, returns the number that fits the matrices' types;
// std::nullopt if llama.cpp has no number for the most frequent type: llama.cpp then looks at the tensors itself.
std::optional<std::uint32_t> find_file_type(std::span<const TypedMatrix> matrices, std::string_view recipe);

// Returns the blocks of a big-endian file in little-endian order, computed when they are read. Requires: type.swapped;
// the blob is whole blocks.
BlobPtr make_swapped_blocks(BlobPtr blob, const BlockType& type);

}  // namespace poise::gguf
