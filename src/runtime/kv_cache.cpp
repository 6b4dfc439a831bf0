#include "runtime/kv_cache.hpp"

#include <algorithm>

namespace poise {
namespace {

std::size_t whole_blocks(std::size_t positions) {
  return (positions + kKeysTogether - 1) / kKeysTogether * kKeysTogether;
}

}  // namespace

KvCache::KvCache(std::size_t layers, std::size_t width, std::size_t positions)
    : KvCache(width, std::vector(layers, positions)) {}

KvCache::KvCache(std::size_t width, const std::vector<std::size_t>& positions) : width_(width) {
  for (const std::size_t count : positions) layers_.push_back({.capacity = whole_blocks(count)});
}

void KvCache::reserve(std::size_t end) {
  // A growing ring has not wrapped yet, so every slot stays in place.
  for (Layer& layer : layers_) {
    const std::size_t needed = std::min(whole_blocks(end), layer.capacity);
    if (needed <= layer.reserved) continue;
    const std::size_t grown = std::min(std::max(needed, 2 * layer.reserved), layer.capacity);
    layer.keys.resize(grown * width_);
    layer.values.resize(grown * width_);
    layer.reserved = grown;
  }
}

std::size_t KvCache::oldest(std::size_t layer) const {
  const Layer& of = layers_[layer];
  return of.end - std::min(of.end, of.capacity);
}

void KvCache::clear() {
  for (Layer& layer : layers_) layer.end = 0;
}

void KvCache::resume(std::size_t layer, std::size_t first, std::size_t last) {
  Layer& ring = layers_[layer];
  // A ring that has gone on this far has dropped what came before `first`.
  ring.end = first == 0 ? last : std::max(last, first + ring.capacity);
}

void KvCache::copy_key(std::size_t layer, std::size_t position, float* out) const {
  const std::size_t slot = position % layers_[layer].capacity;
  const float* const from =
      layers_[layer].keys.data() + slot / kKeysTogether * kKeysTogether * width_ + slot % kKeysTogether;
  for (std::size_t i = 0; i < width_; ++i) out[i] = from[i * kKeysTogether];
}

void KvCache::copy_value(std::size_t layer, std::size_t position, float* out) const {
  std::copy_n(layers_[layer].values.data() + position % layers_[layer].capacity * width_, width_, out);
}

void KvCache::put(std::size_t layer, std::size_t position, const float* key, const float* value) {
  Layer& ring = layers_[layer];
  ring.end = std::max(ring.end, position + 1);
  const std::size_t slot = position % ring.capacity;
  std::copy_n(value, width_, ring.values.data() + slot * width_);
  float* const to = ring.keys.data() + slot / kKeysTogether * kKeysTogether * width_ + slot % kKeysTogether;
  for (std::size_t i = 0; i < width_; ++i) to[i * kKeysTogether] = key[i];
}

std::array<CachedKeys, 2> KvCache::keys(const CachedHead& head) const {
  const auto [before, after] = slots(head);
  const float* const data = layers_[head.layer].keys.data() + head.offset * kKeysTogether;
  const std::size_t stride = width_ * kKeysTogether;
  return {CachedKeys{data, stride, before.begin, before.count}, CachedKeys{data, stride, after.begin, after.count}};
}

std::array<FloatRows, 2> KvCache::values(const CachedHead& head) const {
  const auto [before, after] = slots(head);
  const float* const data = layers_[head.layer].values.data() + head.offset;
  return {FloatRows{data + before.begin * width_, width_, before.count},
          FloatRows{data + after.begin * width_, width_, after.count}};
}

std::array<KvCache::Slots, 2> KvCache::slots(const CachedHead& head) const {
  const std::size_t count = head.last - head.first;
  const std::size_t capacity = layers_[head.layer].capacity;
  const std::size_t begin = head.first % capacity;
  const std::size_t before_wrap = std::min(count, capacity - begin);
  return {Slots{begin, before_wrap}, Slots{0, count - before_wrap}};
}

}  // namespace poise
