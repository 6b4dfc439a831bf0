// The loops that take the time: products with weights as they are stored, attention, activation. Chosen for the processor
// at run time.
//
// Weights may lie at any address. Every product is summed in float32 in one order that depends on the columns only, so
// that a result is the same whether tokens come one by one or together, and whichever thread computes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

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
};

// A matrix, row by row without gaps. Integer codes stand for code * scale + offset. Groups lie within rows, their size divides
// the columns and is a multiple of 16.
struct StoredRows {
  Storage storage = Storage::f32;
  const std::byte* data = nullptr;
  std::size_t columns = 0;
  float scale = 1;
  float offset = 0;
  std::size_t group_size = 0;         // of group8 and group4
  const std::byte* scales = nullptr;  // one a group, row by row
  const std::byte* zeros = nullptr;
};

// Rows [first, first + count) as float32: out [count, columns].
void decode_rows(const StoredRows& matrix, std::size_t first, std::size_t count, float* out);

// y[r] = row r of the matrix times x [columns], for r in [first, last).
void multiply_vector(const StoredRows& matrix, std::size_t first, std::size_t last, const float* x, float* y);

// out[t * stride + r] = weights[r] times x[t]; weights [rows, columns], x [tokens, columns].
void multiply_batch(const float* weights, std::size_t rows, std::size_t columns, const float* x, std::size_t tokens, float* out, std::size_t stride);

// Keys or values of consecutive positions: position i begins at data + i * stride.
struct CachedRows {
  const float* data = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;
};

// scores[i] = scale * (query [size] times row i)
void attention_scores(const float* query, const CachedRows& keys, std::size_t size, float scale, float* scores);
// In place: exp(scores[i] - max) / sum. A NaN or +infinity among the scores makes all of them NaN.
void softmax(float* scores, std::size_t count);
// out [size] += sum of weights[i] * row i
void add_weighted_rows(const float* weights, const CachedRows& values, std::size_t size, float* out);

// gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i]
void silu_product(float* gate, const float* up, std::size_t count);

}  // namespace poise
