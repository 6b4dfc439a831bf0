// Numbers aligned for vectors: a vector that crossed cache lines would be read twice.
#pragma once

#include <vector>

#include <oneapi/tbb/cache_aligned_allocator.h>

namespace poise {

using AlignedFloats = std::vector<float, tbb::cache_aligned_allocator<float>>;

}  // namespace poise
