// Describes the block types of ggml, as GGUF files store them. A block encodes 32 to 256 neighbours in a row.
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
  const float* values = nullptr;  // row_count * row_length numbers
  std::size_t row_count = 0;
  std::size_t row_length = 0;  // a multiple of BlockType::elements
  // Has row_length weights, one for the squared errors of each column. They are finite and not negative. Null: encoders
  // weigh errors as ggml does without an importance matrix.
  const float* importance = nullptr;
};

struct BlockType {
  std::string_view name;  // llama.cpp's name in lower case: "q4_k"
  std::uint32_t number;   // ggml's GGML_TYPE_*, which GGUF files store
  std::size_t elements;   // the number of elements in a block
  std::size_t bytes;      // the size of a block

  // Decodes `count` blocks to `count` * elements numbers: bit by bit those of ggml's dequantize_row_*(), except that a
  // NaN may have other bits. Accepts any bytes. Blocks are independent: a view can decode blocks [begin, end) from
  // `blocks + begin * bytes`. Null: ggml does not decode the type.
  void (*decode)(const std::byte* blocks, std::size_t count, float* out);

  // Encodes rows to the same bytes as ggml_quantize_chunk(), with two exceptions. In a block of iq3_s with a group of
  // zeros before other numbers, ggml puts the codes of later groups in wrong places; Poise puts them in the right ones.
  // In IQ1 to IQ3, ggml's sums overflow or underflow if the largest importance is huge or tiny; Poise scales the
  // importance first. Callers reject numbers that are not finite: the bytes of their blocks are unspecified, but the
  // behaviour is defined. Null: Poise does not write the type.
  void (*encode)(const BlockRows& rows, std::byte* out);

  // Has the offsets of those 16-bit numbers in a block that are big-endian in a big-endian file; empty if a block has
  // none. std::nullopt: ggml does not define the blocks of big-endian files for the type.
  std::optional<std::span<const std::uint16_t>> swapped;

  // The type that llama-quantize chooses for rows that are not whole blocks (src/llama-quant.cpp, v0.5.0): the name of
  // a type with smaller blocks. Empty: float16.
  std::string_view fallback = {};

  // True: llama-quantize refuses the type for matrices without an importance, except for the embedding and the output
  // matrix (tensor_requires_imatrix() in llama-quant.cpp). With a few bits for a number, only an importance preserves
  // the numbers that matter.
  bool needs_importance = false;

  // False: encode() ignores the importance, because a scale depends only on the largest magnitude of its numbers.
  bool uses_importance = true;
};

// Returns all types, in the order of their numbers in GGUF.
std::span<const BlockType> list_block_types();

// Each function returns the type with this name ("q4_k") or number, or null if there is none.
const BlockType* find_named_block_type(std::string_view name);
const BlockType* find_numbered_block_type(std::uint32_t number);
// Returns the type that `type.blocks` names; null if that is empty. Throws bad_argument for an unknown name.
const BlockType* get_block_type(const StoredType& type);

// Returns the type in which to store rows of `row` elements: `type` if a row is whole blocks of `type`; otherwise the
// fallback of `type` if a row is whole blocks of that; otherwise null, which means float16.
const BlockType* choose_block_type_for_rows(const BlockType& type, std::uint64_t row);

// Converts blocks of a big-endian file to little-endian in place: swaps the two bytes of the numbers at type.swapped.
// Requires: type.swapped has a value; `blocks` has whole blocks.
void swap_block_bytes(const BlockType& type, std::span<std::byte> blocks);

}  // namespace poise
