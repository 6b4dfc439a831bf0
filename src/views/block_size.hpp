// block_size: how many elements views compute at a time.
#pragma once

#include <cstddef>

namespace poise {

// Elements whose source, float32 numbers and codes stay in the first-level cache together. Even: a block of 4-bit codes
// begins with a whole byte.
inline constexpr std::size_t kBlockSize = 4096;

}  // namespace poise
