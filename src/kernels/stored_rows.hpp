// Describes rows of weights as files store them, and converts them to float32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

struct BlockType;  // codec/block_type.hpp

// Describes a range [first, last) of rows, tokens or blocks.
struct IndexRange {
  std::size_t first = 0;
  std::size_t last = 0;

  std::size_t size() const { return last - first; }
};

// Lists the ways in which weights are stored.
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
  mx4,     // numbers of E2M1, two a byte, the even element in the low nibble. The scale of each group of 32 is a power
           // of two (E8M0)
  // Numbers with float32 scales and, perhaps, zero points: (number - zero) * scale. A scale belongs to a group of
  // columns of StoredRows::scale_rows rows.
  scaled8,         // unsigned codes
  scaled4,         // the same, two codes a byte, the even element in the low nibble
  codebook4,       // indices into a table of 16 numbers, two a byte in the same order
  scaled_f8_e4m3,  // floating-point numbers
  scaled_f8_e5m2,
  // Unsigned codes. The rows of a group (StoredRows::row_groups) share a float32 scale and, perhaps, a zero point for
  // each column.
  by_column8,
  by_column4,  // the same, two codes a byte, the even element in the low nibble
  blocks,      // blocks of one of ggml's types (StoredRows::blocks); rows are whole blocks
};

// Refers to a matrix whose rows are stored one after the other, without gaps. The codes of i8 to u4_bytes stand for
// code * scale + offset. No group continues in the next row. If there are groups, their size and the number of columns
// are multiples of 16; the size divides the number of columns, unless scales are float32.
struct StoredRows {
  Storage storage = Storage::f32;
  const std::byte* data = nullptr;
  std::size_t columns = 0;
  float scale = 1;
  float offset = 0;
  std::size_t group_size = 0;         // 0: no groups. If scales are float32, the last group of a row may be shorter
  const std::byte* scales = nullptr;  // one for each group, row by row; by_column: [row groups, columns]
  const std::byte* zeros = nullptr;   // the same. If scales are float32, null means that all are `offset`
  std::size_t scale_rows = 1;         // rows that share scales, if these are float32
  const std::byte* table = nullptr;   // the float32 table of codebook4
  const BlockType* blocks = nullptr;  // the block type of the storage `blocks`
  const std::uint32_t* row_groups = nullptr;  // the group of each row, for by_column8 and by_column4
};

// Refers to a part of x that KernelInput converts: some blocks of columns of some tokens. x[t * stride + c] belongs to
// token t. Its column is c, counted from the first column of the first block.
struct InputPart {
  const float* x = nullptr;
  std::size_t stride = 0;
  IndexRange tokens;
  IndexRange blocks;  // blocks of KernelInput::block_columns() columns
};

// Returns how many bytes `elements` elements take, without separate scales. Requires: they are whole blocks.
std::uint64_t count_element_bytes(const StoredRows& matrix, std::uint64_t elements);

// Returns how many bytes a separate scale of the matrix takes; 0 if it has none.
std::size_t measure_scale(const StoredRows& matrix);

// Decodes rows [first, first + count) to float32: out [count, columns].
void decode_rows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out);

}  // namespace poise
