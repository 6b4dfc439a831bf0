#include "runtime/kv_cache.hpp"

#include <algorithm>

namespace poise {

KvCache::KvCache(std::size_t layers, std::size_t width, std::size_t capacity) : width_(width), capacity_(capacity), keys_(layers), values_(layers) {}

void KvCache::reserve(std::size_t end) {
  // While the ring grows it has not wrapped yet, so that every slot stays where it is.
  constexpr std::size_t kFirst = 64;
  const std::size_t needed = std::min(end, capacity_);
  if (needed <= reserved_) return;
  const std::size_t grown = std::min(std::max({needed, 2 * reserved_, kFirst}), capacity_);
  for (std::vector<Rows>* cache : {&keys_, &values_}) {
    for (Rows& rows : *cache) rows.resize(grown * width_);
  }
  reserved_ = grown;
}

KvCache::Runs KvCache::runs(const Rows& rows, std::size_t first, std::size_t last, std::size_t offset) const {
  const std::size_t count = last - first;
  const std::size_t slot = first % capacity_;
  const std::size_t before_wrap = std::min(count, capacity_ - slot);
  return {CachedRows{rows.data() + slot * width_ + offset, width_, before_wrap}, CachedRows{rows.data() + offset, width_, count - before_wrap}};
}

}  // namespace poise
