// Measures how fast the machine reads its memory. This limits decoding, which reads all weights for each token.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

// Returns bytes per second: the median of three passes, in which `threads` threads at once add up the words of a buffer
// of `bytes` bytes. Requires: threads > 0. Throws bad_alloc.
double measure_read_rate(unsigned threads, std::size_t bytes);

}  // namespace poise
