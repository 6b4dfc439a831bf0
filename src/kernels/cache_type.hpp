// The loops of attention, and cache types: how keys and values of positions are stored. A new type is a row of the
// table in cache_type.cpp, and its kernels in cached_attention.cpp.
//
// A block has kBlockPositions positions of one head of keys, or of values. Codes come first: of keys [size, positions],
// so that a vector holds the same element of several keys and scores need no sums across lanes; of values [positions,
// size]. Scales follow, each for `group` neighbours of a head: of keys [groups, positions], of values [positions,
// groups].
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

// How many queries share the loaded keys and values, at most.
inline constexpr std::size_t kQueriesTogether = 8;

// Computes in place exp(scale * scores[i] - max), where `max` is the largest of all scale * scores[i] and of the sink,
// if there is one. Returns their sum, with the sink's exp(sink - max): NaN where a score is NaN or +infinity. A block
// of 64 scores of -infinity leaves the sum as it is, wherever it stands among other blocks. Requires: scale > 0.
double compute_exponentials(float* scores, std::size_t count, float scale, const float* sink);

// Computes in place exp(scores[i] - max) / sum. A NaN or +infinity among the scores makes all NaN.
void apply_softmax(float* scores, std::size_t count);
// Computes out[q * size + j] += sum over i of weights[q][i] * values[i][j]; each row of `weights` has an entry for each
// value.
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

// Holds the loops for heads of `size` numbers. Numbers become float32 one vector at a time; sums are float32. A row
// gets the same bits among any others.
struct CacheKernels {
  // Computes scores[q * stride + i] = scale * (row q of the queries times key i of the run).
  void (*scores)(const FloatRows& queries, const CachedRun& keys, std::size_t size, float scale, float* scores,
                 std::size_t stride);
  // Computes out[q * size + j] += sum over i of weights[q][i] * values[i][j], in the order of i.
  void (*add_values)(const FloatRows& weights, const CachedRun& values, std::size_t size, float* out);
  // Decode all numbers of a block: of keys [size, kBlockPositions], of values [kBlockPositions, size]. They return
  // whether all are finite.
  bool (*decode_keys)(const std::byte* block, std::size_t size, float* out);
  bool (*decode_values)(const std::byte* block, std::size_t size, float* out);
};

struct CacheTypeRow {
  CacheType type;
  std::string_view name;
  DType code;
  std::size_t group;  // neighbours of a head that share a scale; 0: there are no scales
  // Stores `size` numbers of a head. Returns the index of the first number that the type does not hold, or `size`.
  std::size_t (*encode)(const float* numbers, std::size_t size, std::byte* codes, float* scales);
  const CacheKernels& (*kernels)();  // for the running processor

  std::size_t code_bytes() const { return info(code).bits / 8; }
  // Returns how many scales a head of `size` numbers has.
  std::size_t scales(std::size_t size) const { return group == 0 ? 0 : (size + group - 1) / group; }
  // Returns the bytes of kBlockPositions heads of `size` numbers, with their scales: a multiple of 64.
  std::size_t block_bytes(std::size_t size) const {
    return kBlockPositions * (size * code_bytes() + scales(size) * sizeof(float));
  }
};

std::span<const CacheTypeRow> list_cache_types();
const CacheTypeRow& find_cache_type_row(CacheType type);

// cached_attention.cpp defines these.
const CacheKernels& get_f32_cache_kernels();
const CacheKernels& get_f16_cache_kernels();
const CacheKernels& get_q8_cache_kernels();

// Neighbours that share a scale in q8.
inline constexpr std::size_t kCodeGroup = 32;
// Encodes each group of kCodeGroup numbers, the last perhaps shorter: scale = max(abs(x)) / 127, codes = x / scale to
// the nearest even integer. A group with a number that is not finite gets a scale that is NaN.
void encode_q8(const float* numbers, std::size_t size, std::int8_t* codes, float* scales);

}  // namespace poise
