// Attention of one query head over cached positions.
#pragma once

#include <vector>

#include "runtime/kv_cache.hpp"

namespace poise {

// out [size] = softmax(query . keys / sqrt(size)) values over positions [first, last) of a layer, whose head begins at column
// `offset`. `scores` is scratch memory.
void attend(const KvCache& cache, std::size_t layer, std::size_t first, std::size_t last, std::size_t offset, std::size_t size, const float* query, float* out,
            std::vector<float>& scores);

}  // namespace poise
