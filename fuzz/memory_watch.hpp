// MemoryWatch: how much memory C++ code holds, counted where it is asked for.
#pragma once

#include <cstdint>

namespace poise::fuzz {

// While one lives, memory beyond `limit` bytes ends the program in the allocation that asks for it. One at a time.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::uint64_t limit);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
};

}  // namespace poise::fuzz
