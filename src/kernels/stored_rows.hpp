// Rows of weights as files store them, and their conversion to float32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

struct BlockType;  // codec/block_type.hpp

// Numbers, rows, ... [first, last).
struct IndexRange {
  std::size_t first = 0;
  std::size_t last = 0;

  std::size_t size() const { return last - first; }
};

// How a weight is stored.
enum class Storage : std::uint8_t {
  f32,
  f16,
  bf16,
  i8,
  u8,
  i4,        // two codes a byte, the even element in the low nibble; two's complement
  u4,        // the same, unsigned
  i4_bytes,  // one code a byte, in the low nibble
  u4_bytes,
  group8,  // unsigned codes with a float16 scale and zero point for each group: (code - zero) * scale
  group4,  // the same, two codes a byte, the even element in the low nibble
  mx4,  // numbers of E2M1, two a byte, the even element in the low nibble, times a power of two (E8M0) for each group
        // of 32
  blocks,  // of a type of ggml's (StoredRows::blocks); rows are whole blocks
};

// A matrix, row by row without gaps. Integer codes stand for code * scale + offset. Groups are within rows; their size
// divides the columns and is a multiple of 16.
struct StoredRows {
  Storage storage = Storage::f32;
  const std::byte* data = nullptr;
  std::size_t columns = 0;
  float scale = 1;
  float offset = 0;
  std::size_t group_size = 0;         // of group8, group4 and mx4
  const std::byte* scales = nullptr;  // one for each group, row by row
  const std::byte* zeros = nullptr;   // of group8 and group4
  const BlockType* blocks = nullptr;  // of blocks
};

// The bytes of that many elements of rows without gaps, without separate scales. Requires: whole blocks.
std::uint64_t stored_bytes(const StoredRows& matrix, std::uint64_t elements);

// Rows [first, first + count) as float32: out [count, columns].
void decode_rows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out);

}  // namespace poise
