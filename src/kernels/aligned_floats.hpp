// Numbers at an address that suits vectors: one that crossed lines of the cache would be read twice.
#pragma once

#include <vector>

#include <oneapi/tbb/cache_aligned_allocator.h>

namespace poise {

using AlignedFloats = std::vector<float, tbb::cache_aligned_allocator<float>>;

}  // namespace poise
