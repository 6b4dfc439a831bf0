// The loops of attention: scores of queries with keys, their softmax, sums of values.
#pragma once

#include <cstddef>

namespace poise {

// Rows of numbers: row i begins at data + i * stride.
struct FloatRows {
  const float* data = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;
};

// Keys of consecutive positions, interleaved in blocks of kKeysTogether: element e of key i is data[s / kKeysTogether *
// stride + e * kKeysTogether + s % kKeysTogether], where s = begin + i. Blocks are complete.
inline constexpr std::size_t kKeysTogether = 64;
struct CachedKeys {
  const float* data = nullptr;
  std::size_t stride = 0;
  std::size_t begin = 0;
  std::size_t count = 0;
};

// How many queries share the loaded keys and values.
inline constexpr std::size_t kQueriesTogether = 4;

// scores[q * stride + i] = scale * (row q of the queries times key i), both of `size` numbers
void attention_scores(const FloatRows& queries, const CachedKeys& keys, std::size_t size, float scale, float* scores,
                      std::size_t stride);
// In place: exp(scores[i] - max) / sum. A NaN or +infinity among the scores makes all NaN.
void softmax(float* scores, std::size_t count);
// out[q * size + j] += sum of weights[q][i] * values[i][j]; each row of `weights` has an entry for each value.
void add_weighted_rows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out);

}  // namespace poise
