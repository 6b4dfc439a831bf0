#include "runtime/kv_cache.hpp"

#include <algorithm>

namespace poise {
namespace {

std::size_t whole_blocks(std::size_t positions) { return (positions + kKeysTogether - 1) / kKeysTogether * kKeysTogether; }

}  // namespace

KvCache::KvCache(std::size_t layers, std::size_t width, std::size_t positions)
    : width_(width), capacity_(whole_blocks(positions)), keys_(layers), values_(layers) {}

void KvCache::reserve(std::size_t end) {
  // While the ring grows it has not wrapped yet, so that every slot stays where it is.
  const std::size_t needed = std::min(whole_blocks(end), capacity_);
  if (needed <= reserved_) return;
  const std::size_t grown = std::min(std::max(needed, 2 * reserved_), capacity_);
  for (std::vector<AlignedFloats>* cache : {&keys_, &values_}) {
    for (AlignedFloats& numbers : *cache) numbers.resize(grown * width_);
  }
  reserved_ = grown;
}

void KvCache::put(std::size_t layer, std::size_t position, const float* key, const float* value) {
  const std::size_t slot = position % capacity_;
  std::copy_n(value, width_, values_[layer].data() + slot * width_);
  float* const to = keys_[layer].data() + slot / kKeysTogether * kKeysTogether * width_ + slot % kKeysTogether;
  for (std::size_t i = 0; i < width_; ++i) to[i * kKeysTogether] = key[i];
}

std::array<CachedKeys, 2> KvCache::keys(const CachedHead& head) const {
  const auto [before, after] = slots(head);
  const float* const data = keys_[head.layer].data() + head.offset * kKeysTogether;
  const std::size_t stride = width_ * kKeysTogether;
  return {CachedKeys{data, stride, before.begin, before.count}, CachedKeys{data, stride, after.begin, after.count}};
}

std::array<FloatRows, 2> KvCache::values(const CachedHead& head) const {
  const auto [before, after] = slots(head);
  const float* const data = values_[head.layer].data() + head.offset;
  return {FloatRows{data + before.begin * width_, width_, before.count}, FloatRows{data + after.begin * width_, width_, after.count}};
}

std::array<KvCache::Slots, 2> KvCache::slots(const CachedHead& head) const {
  const std::size_t count = head.last - head.first;
  const std::size_t begin = head.first % capacity_;
  const std::size_t before_wrap = std::min(count, capacity_ - begin);
  return {Slots{begin, before_wrap}, Slots{0, count - before_wrap}};
}

}  // namespace poise
