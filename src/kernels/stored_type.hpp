// A stored type: a row of a table with the kernels for weights stored that way. A new one is a row and a file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/code_panel.hpp"
#include "kernels/product_kernels.hpp"

namespace poise {

// x of a few tokens, unchanged.
struct FewFloats {
  const float* x;  // [tokens, columns]
  std::size_t tokens;
};

// multiply_rows() of few tokens.
template <class Input>
using MultiplyFew = void (*)(const StoredRows& matrix, std::size_t first, std::size_t last, const Input& x, float* y,
                             std::size_t stride);

// Columns [begin, begin + count) of a row as bfloat16 numbers whose sum they are: parts[p][i] for the i-th. Requires:
// `begin` is a multiple of 16.
struct SplitRow {
  std::size_t row;
  std::size_t begin;
  std::size_t count;
  std::uint16_t* const* parts;
};

// The kernels of a stored type, for one kind of processor.
struct TypeKernels {
  void (*decode)(const StoredRows& matrix, const DecodedPart& part) = nullptr;
  // With x as floats, directly from the stored bytes. Null: rows become float32 first.
  MultiplyFew<FewFloats> multiply_floats = nullptr;
  // add_weighted_rows() of these rows, directly from the stored bytes. Null: rows become float32 first.
  void (*add_rows)(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x,
                   float* sums) = nullptr;
  // With x as integers, at most one of these. Null: not supported.
  MultiplyFew<KernelInput::Words> multiply_words = nullptr;
  MultiplyFew<KernelInput::Bytes> multiply_bytes = nullptr;
  std::size_t least_group = 0;  // the smallest group that these take
  CodeForm panels = {};         // how many tokens meet it as codes
  // As many parts as the type's TileForm has, directly from the stored bytes. Null: numbers become float32 first.
  void (*split)(const StoredRows& matrix, const SplitRow& row) = nullptr;
};

// The form of weights for a matrix unit (tiles.hpp).
enum class TileForm : std::uint8_t {
  rounded,      // to one bfloat16 number, x too: their codes have rounded them more
  two_parts,    // as sums of two bfloat16 numbers, x too
  three_parts,  // of three, x too: float32 numbers keep all their bits
  codes,        // codes with a scale for all meet integers of x. Rows that become no panels: two_parts
  stored,       // as the bfloat16 numbers that they are; x has two parts
};

struct StoredTypeRow {
  std::size_t bits = 0;     // of an element, without separate scales; 0: for blocks, whose type has the size
  std::size_t planes = 0;   // codes in a 16-bit word; 0: not codes
  std::size_t x_group = 0;  // of blocks: columns in a sum of x as integers; 0: none
  TileForm tiles = TileForm::rounded;
  const TypeKernels& (*kernels)() = nullptr;  // for the running processor
  std::size_t scale_bytes = 0;                // of a separate scale
};

const StoredTypeRow& stored_type(const StoredRows& matrix);

// Returns the same for blocks of a type; stored_blocks.cpp has their table.
const StoredTypeRow& stored_block_type(const BlockType& type);

// Each in its file.
const TypeKernels& f32_kernels();
const TypeKernels& f16_kernels();
const TypeKernels& bf16_kernels();
const TypeKernels& i8_kernels();
const TypeKernels& u8_kernels();
const TypeKernels& i4_kernels();
const TypeKernels& u4_kernels();
const TypeKernels& i4_bytes_kernels();
const TypeKernels& u4_bytes_kernels();
const TypeKernels& group8_kernels();
const TypeKernels& group4_kernels();
const TypeKernels& mx4_kernels();
const TypeKernels& scaled8_kernels();
const TypeKernels& scaled4_kernels();
const TypeKernels& codebook4_kernels();
const TypeKernels& scaled_f8_e4m3_kernels();
const TypeKernels& scaled_f8_e5m2_kernels();
const TypeKernels& by_column8_kernels();
const TypeKernels& by_column4_kernels();

}  // namespace poise
