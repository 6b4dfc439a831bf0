// Computes attention over cached keys and values, and lists the types in which a cache stores them. To add a type, add
// a row to the table in cache_type.cpp and its kernels to cached_attention.cpp.
//
// A block stores the keys, or the values, of one head at kBlockPositions positions. Its codes (numbers of type
// CacheTypeRow::code) come first. If a head has `size` numbers, codes of keys are [size, positions], so that a vector
// loads the same element of several keys, and a score needs no sum across lanes. Codes of values are [positions, size].
// Then come the scales, one for each `group` neighbouring numbers of a head: [groups, positions] for keys, [positions,
// groups] for values.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <poise/cache_type.hpp>
#include <poise/dtype.hpp>

namespace poise {

// Refers to rows of numbers: row i begins at data + i * stride.
struct FloatRows {
  const float* data = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;
};

// The kernels compute with at most this number of queries at a time, and load each vector of keys or values once for
// all of them.
inline constexpr std::size_t kQueriesTogether = 8;

// Computes in place exp(scale * scores[i] - max). `sink` is a learned score without a value, or null; `max` is the
// largest of all scale * scores[i] and of the sink. Returns the sum of the results and of exp(sink - max), or NaN if a
// score is NaN or `max` is infinite. The sum has the same bits without 64 scores of -infinity that begin at a multiple
// of 64. Requires: scale > 0.
double compute_exponentials(float* scores, std::size_t count, float scale, const float* sink);

// Computes in place the softmax: exp(scores[i] - max), divided by the sum of these. If a score is NaN or +infinity, all
// results are NaN.
void apply_softmax(float* scores, std::size_t count);
// Computes out[q * size + j] += sum over i of weights[q][i] * values[i][j]. A row of `weights` has a number for each
// row of `values`.
void add_weighted_rows(const FloatRows& weights, const FloatRows& values, std::size_t size, float* out);

inline constexpr std::size_t kBlockPositions = 64;

// Refers to positions [first, first + count) of a block.
struct CachedRun {
  const std::byte* block = nullptr;  // aligned for float32
  std::size_t first = 0;
  std::size_t count = 0;
  const std::byte* next = nullptr;  // the block that is read next, for prefetching; null: none
  std::size_t next_bytes = 0;
};

// Holds the loops for one cache type; a head has `size` numbers. The loops convert stored numbers to float32 one vector
// at a time, and sum in float32. The result of a query does not depend on the other queries of a call.
struct CacheKernels {
  // Computes scores[q * stride + i] = scale * (row q of the queries times key i of the run).
  void (*compute_scores)(const FloatRows& queries, const CachedRun& keys, std::size_t size, float scale, float* scores,
                         std::size_t stride);
  // Computes out[q * size + j] += sum over i of weights[q][i] * values[i][j], in the order of i.
  void (*add_values)(const FloatRows& weights, const CachedRun& values, std::size_t size, float* out);
  // Each function decodes all numbers of a block: keys to [size, kBlockPositions], values to [kBlockPositions, size].
  // Returns true if all of them are finite.
  bool (*decode_keys)(const std::byte* block, std::size_t size, float* out);
  bool (*decode_values)(const std::byte* block, std::size_t size, float* out);
};

struct CacheTypeRow {
  CacheType type;
  std::string_view name;
  DType code;
  std::size_t group;  // neighbouring numbers of a head that share a scale; 0: no scales
  // Stores `size` numbers of a head. Returns the index of the first number that the type does not hold, or `size`.
  std::size_t (*encode)(const float* numbers, std::size_t size, std::byte* codes, float* scales);
  const CacheKernels& (*kernels)();  // returns the kernels for the running processor

  std::size_t count_code_bytes() const { return info(code).bits / 8; }
  // Returns how many scales a head of `size` numbers has.
  std::size_t count_scales(std::size_t size) const { return group == 0 ? 0 : (size + group - 1) / group; }
  // Returns how many bytes kBlockPositions heads of `size` numbers take, with their scales: a multiple of 64.
  std::size_t count_block_bytes(std::size_t size) const {
    return kBlockPositions * (size * count_code_bytes() + count_scales(size) * sizeof(float));
  }
};

std::span<const CacheTypeRow> list_cache_types();
const CacheTypeRow& find_cache_type_row(CacheType type);

// cached_attention.cpp defines these.
const CacheKernels& get_f32_cache_kernels();
const CacheKernels& get_f16_cache_kernels();
const CacheKernels& get_q8_cache_kernels();

// In q8, kCodeGroup neighbouring numbers of a head share a scale.
inline constexpr std::size_t kCodeGroup = 32;
// Encodes each group of kCodeGroup numbers; the last group may be shorter. scale = max(abs(x)) / 127, code = x / scale,
// rounded to the nearest integer, ties to even. If a number is not finite, the scale of its group is NaN.
void encode_q8(const float* numbers, std::size_t size, std::int8_t* codes, float* scales);

}  // namespace poise
