// block_size: how many elements views compute at a time.
#pragma once

#include <cstddef>

namespace poise {

// Elements whose source, float32 numbers and codes fit the first-level cache together. Even, so that a block of 4-bit
// codes begins at a whole byte.
inline constexpr std::size_t kBlockSize = 4096;

}  // namespace poise
