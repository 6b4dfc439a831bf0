// Describes the block types of ggml, as GGUF files store them: a block of a few bytes encodes neighbouring elements of
// a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <poise/stored_type.hpp>

namespace poise {

// Limits how many elements share a scale when Poise quantizes. docs/limits.md lists this limit for users.
inline constexpr std::uint64_t kMaxGroupSize = 1 << 20;

// Holds the input of encoders: contiguous rows of float32.
struct BlockRows {
  const float* values = nullptr;  // row_count * row_length
  std::size_t row_count = 0;
  std::size_t row_length = 0;  // a multiple of the type's elements
  // Weights of squared errors [row_length], finite and not negative. Null: ggml's rule without an importance.
  const float* importance = nullptr;
};

struct BlockType {
  std::string_view name;  // llama.cpp's name in lower case: "q4_k"
  std::uint32_t number;   // GGML_TYPE_*
  std::size_t elements;   // the number of elements in a block
  std::size_t bytes;      // the size of a block

  // Decodes `count` blocks to `count` * elements numbers. Has the results of ggml's dequantize_row_*(), bit by bit
  // except for the bits of NaN. Accepts any bytes. Blocks are independent, so that a view can decode blocks [begin,
  // end) from `blocks + begin * bytes`. Null: ggml does not decode the type.
  void (*decode)(const std::byte* blocks, std::size_t count, float* out);

  // Encodes rows with the results of ggml_quantize_chunk(), byte by byte, with two exceptions. In blocks of iq3_s that
  // have a group of zeros before other numbers, ggml puts the codes of later groups in the wrong places. In types with
  // grids (IQ1 to IQ3), ggml's sums overflow or underflow if an importance is huge or tiny, and Poise scales it first.
  // Numbers that are not finite produce undefined blocks, but no undefined behaviour; callers reject them first. Null:
  // Poise does not write the type.
  void (*encode)(const BlockRows& rows, std::byte* out);

  // The offsets of 16-bit numbers in a block, which big-endian files byte-swap. std::nullopt: ggml defines no byte
  // order for the type.
  std::optional<std::span<const std::uint16_t>> swapped;

  // The type that llama-quantize chooses for rows that are not whole blocks (src/llama-quant.cpp, v0.5.0): the name of
  // a type with smaller blocks. Empty: float16.
  std::string_view fallback = {};

  // True: llama-quantize refuses the type for matrices without an importance, except for the embedding and the output
  // matrix (its tensor_requires_imatrix()). Without an importance, types of a few bits lose the weights that matter.
  bool needs_importance = false;

  // False: encode() ignores the importance, because the scale depends only on the largest numbers of a block.
  bool uses_importance = true;
};

// Returns all types, in the order of their numbers in GGUF.
std::span<const BlockType> list_block_types();

// Returns null if there is no such type.
const BlockType* find_named_block_type(std::string_view name);
const BlockType* find_numbered_block_type(std::uint32_t number);
// Returns null if the type has no blocks. Throws bad_argument for unknown names.
const BlockType* get_block_type(const StoredType& type);

// Returns the type in which to store rows of `row` elements: `type` if the rows are whole blocks, else its fallback if
// they are whole blocks of that type, else null, which means float16.
const BlockType* choose_block_type_for_rows(const BlockType& type, std::uint64_t row);

// Swaps both bytes of each 16-bit number in blocks from a big-endian file, in place. Requires: type.swapped, whole
// blocks.
void swap_block_bytes(const BlockType& type, std::span<std::byte> blocks);

}  // namespace poise
