// CountedBlocks: which blocks of a computed blob have been reported on, so that reading some twice reports them once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace poise {

// Safe to use from many threads.
class CountedBlocks {
 public:
  static constexpr std::size_t kElements = 4096;

  explicit CountedBlocks(std::uint64_t elements) : marks_(static_cast<std::size_t>(elements / kElements + 1)) {}

  // True when nobody has asked for the block yet that begins with this element. Elements inside of a block belong to what
  // was read before them.
  bool first_time(std::uint64_t element) {
    return element % kElements == 0 && marks_[static_cast<std::size_t>(element / kElements)].exchange(1, std::memory_order_relaxed) == 0;
  }

 private:
  std::vector<std::atomic<std::uint8_t>> marks_;
};

}  // namespace poise
