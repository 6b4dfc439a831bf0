// A MemoryWatch counts the memory that C++ code holds.
#pragma once

#include <cstdint>

namespace poise::fuzz {

// While a MemoryWatch exists, an allocation beyond `limit` bytes ends the program. Requires: only one exists at a time.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::uint64_t limit);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
};

}  // namespace poise::fuzz
