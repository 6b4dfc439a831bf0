// The loops of attention that do not depend on how keys and values are stored. cache_type.hpp has the others.
#pragma once

#include <cstddef>

namespace poise {

// Rows of numbers: row i begins at data + i * stride.
struct FloatRows {
  const float* data = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;
};

// How many queries share the loaded keys and values, at most.
inline constexpr std::size_t kQueriesTogether = 8;

// In place: exp(scale * scores[i] - max), where `max` is the largest of all scale * scores[i] and of the sink, if there
// is one. Returns their sum, with the sink's exp(sink - max): NaN where a score is NaN or +infinity. A block of 64
// scores of -infinity leaves the sum as it is, wherever it stands among other blocks. Requires: scale > 0.
double exponentials(float* scores, std::size_t count, float scale, const float* sink);

// In place: exp(scores[i] - max) / sum. A NaN or +infinity among the scores makes all NaN.
void softmax(float* scores, std::size_t count);
// out[q * size + j] += sum of weights[q][i] * values[i][j]; each row of `weights` has an entry for each value.
void add_weighted_rows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out);

}  // namespace poise
