// Attention of query heads over cached positions.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/kv_cache.hpp"

namespace poise {

// out[q] = softmax(queries[q] . keys / sqrt(size)) values, for `count` query heads that share a head of keys and values; queries and out
// [count, head.size]. `scores` is scratch memory. Each result is the same to the bit whatever other queries come with it.
void attend(const KvCache& cache, const CachedHead& head, const float* queries, std::size_t count, float* out, std::vector<float>& scores);

}  // namespace poise
