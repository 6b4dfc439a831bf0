// Loops over numbers and tokens that threads share.
#pragma once

#include <cstddef>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

namespace poise {

// Calls use(first, last) for parts of [0, count) at once, on the threads of the calling task arena. A part has at least
// half of `least`. One part alone costs nothing more than the call.
template <class Use>
void in_parallel(std::size_t count, std::size_t least, const Use& use) {
  if (count <= least) return use(std::size_t{0}, count);
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, count, least),
                    [&](const tbb::blocked_range<std::size_t>& range) { use(range.begin(), range.end()); });
}

inline constexpr std::size_t kLeastNumbers = 16384;  // fewer are not worth a task

}  // namespace poise
