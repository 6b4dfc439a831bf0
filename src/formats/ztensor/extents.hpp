// Extents: the bytes of a file that parts take. Two of them are the same range, or share no byte.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace poise::ztensor {

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint64_t position = 0;  // where the manifest says so
  std::uint32_t tensor = 0;    // indices of who takes them: what they mean is up to who asks
  std::uint32_t part = 0;
};

// The first two that break the rule, in the order of their beginnings. Quickest where extents come in that order. Requires: none is empty.
std::optional<std::pair<Extent, Extent>> find_overlap(std::vector<Extent> extents);

}  // namespace poise::ztensor
