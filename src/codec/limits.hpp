// The limit of codes. docs/limits.md lists it for users.
#pragma once

#include <cstdint>

namespace poise {

inline constexpr std::uint64_t kMaxGroupSize = 1 << 20;  // elements that share a scale, when Poise quantizes

}  // namespace poise
