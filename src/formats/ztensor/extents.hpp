// Extents: the bytes of a file that components take. Two of them are the same range, or share no byte.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "formats/ztensor/object.hpp"

namespace poise::ztensor {

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  const Object* object = nullptr;  // null: the manifest
  const Component* component = nullptr;
};

// The first two that break the rule, in the order of their beginnings. Quickest where extents come in that order. Requires: none is empty.
std::optional<std::pair<Extent, Extent>> find_overlap(std::vector<Extent> extents);

}  // namespace poise::ztensor
