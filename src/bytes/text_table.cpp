#include "bytes/text_table.hpp"

#include <bit>
#include <random>
#include <utility>

#include <xxhash.h>

namespace poise {

std::uint64_t get_hash_seed() {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }();
  return seed;
}

void TextTable::reserve(std::size_t texts) {
  constexpr std::size_t kLeast = 16;
  const std::size_t wanted = std::bit_ceil(std::max(texts + texts / 4, kLeast));
  if (wanted <= slots_.size()) return;
  const auto before = std::exchange(slots_, decltype(slots_)(wanted));
  const std::size_t mask = wanted - 1;
  for (const Slot& slot : before) {
    if (slot.is_free()) continue;
    std::size_t at = slot.tag() & mask;
    while (!slots_[at].is_free()) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void TextTable::clear() {
  slots_.clear();
  size_ = 0;
}

std::uint32_t TextTable::hash(std::string_view text) {
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(text.data(), text.size(), get_hash_seed()));
}

}  // namespace poise
