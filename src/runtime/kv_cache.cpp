#include "runtime/kv_cache.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {
namespace {

std::size_t round_up_to_blocks(std::size_t positions) {
  return (positions + kBlockPositions - 1) / kBlockPositions * kBlockPositions;
}

// Describes where a position's numbers are among the codes or scales of a block: the first place, and the distance from
// one to the next.
struct Places {
  std::size_t first;
  std::size_t step;
};

Places find_places(Cached what, std::size_t position, std::size_t count) {
  const std::size_t slot = position % kBlockPositions;
  return what == Cached::keys ? Places{slot, kBlockPositions} : Places{slot * count, 1};
}

template <typename Code>
void scatter(const std::byte* from, std::size_t count, const Places& to, std::byte* block) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(block + (to.first + i * to.step) * sizeof(Code), from + i * sizeof(Code), sizeof(Code));
}

template <typename Code>
void gather(const std::byte* block, const Places& from, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(to + i * sizeof(Code), block + (from.first + i * from.step) * sizeof(Code), sizeof(Code));
}

// Calls `f` with an unsigned integer that is as wide as the codes of the type.
template <typename F>
void visit_code(const CacheTypeRow& type, const F& f) {
  switch (type.count_code_bytes()) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    default: return f(std::uint32_t());
  }
}

}  // namespace

KvCache::KvCache(CacheType type, const CachedHeads& heads, const std::vector<std::size_t>& positions,
                 const std::optional<IndexRange>& held)
    : type_(&find_cache_type_row(type)),
      heads_(heads),
      block_bytes_(type_->count_block_bytes(heads.size)),
      held_(held.value_or(IndexRange{0, positions.size()})) {
  for (const std::size_t count : positions) layers_.push_back({.capacity = round_up_to_blocks(count)});
}

void KvCache::reserve(std::size_t end) {
  // A ring that can still grow has not wrapped yet, so every slot stays in place.
  for (Layer& layer : std::span(layers_).subspan(held_.first, held_.size())) {
    const std::size_t needed = std::min(round_up_to_blocks(end), layer.capacity);
    if (needed <= layer.reserved) continue;
    const std::size_t grown = std::min(std::max(needed, 2 * layer.reserved), layer.capacity);
    const std::size_t bytes = grown / kBlockPositions * heads_.count * block_bytes_;
    layer.keys.resize(bytes);
    layer.values.resize(bytes);
    layer.reserved = grown;
  }
}

std::size_t KvCache::find_oldest_position(std::size_t layer) const {
  const Layer& stored = layers_[layer];
  return stored.end - std::min(stored.end, stored.capacity);
}

void KvCache::clear() {
  for (Layer& layer : layers_) layer.end = 0;
}

void KvCache::set_positions(std::size_t layer, std::size_t first, std::size_t last) {
  Layer& ring = layers_[layer];
  // With this end, the ring has no position before `first`, since it keeps `capacity` positions.
  ring.end = first == 0 ? last : std::max(last, first + ring.capacity);
}

void KvCache::encode_and_store(std::size_t layer, std::size_t position, const float* key, const float* value) {
  encode_and_store(Cached::keys, layer, position, key);
  encode_and_store(Cached::values, layer, position, value);
}

void KvCache::encode_and_store(Cached what, std::size_t layer, std::size_t position, const float* numbers) {
  thread_local std::vector<std::byte> codes;
  thread_local std::vector<float> scales;
  codes.resize(std::max(codes.size(), width() * type_->count_code_bytes()));
  scales.resize(std::max(scales.size(), count_scales()));
  for (std::size_t head = 0; head < heads_.count; ++head) {
    const float* const from = numbers + head * heads_.size;
    const std::size_t bad =
        type_->encode(from, heads_.size, codes.data() + head * heads_.size * type_->count_code_bytes(),
                      scales.data() + head * type_->count_scales(heads_.size));
    if (bad == heads_.size) continue;
    throw Error(
        ErrorKind::unsupported,
        fmt::format("layer {}, position {}: the {} have the number {}, which a cache of {} does not hold; use one "
                    "of f32 or q8 (--cache)",
                    layer, position, what == Cached::keys ? "keys" : "values", from[bad], type_->name));
  }
  store(what, layer, position, codes.data(), scales.data());
}

void KvCache::store(Cached what, std::size_t layer, std::size_t position, const std::byte* codes, const float* scales) {
  Layer& ring = layers_[layer];
  ring.end = std::max(ring.end, position + 1);
  const std::size_t size = heads_.size;
  const std::size_t groups = type_->count_scales(size);
  Bytes& bytes = what == Cached::keys ? ring.keys : ring.values;
  visit_code(*type_, [&](auto code) {
    for (std::size_t head = 0; head < heads_.count; ++head) {
      std::byte* const block = bytes.data() + find_place_in_blocks(ring, head, position);
      scatter<decltype(code)>(codes + head * size * sizeof code, size, find_places(what, position, size), block);
      scatter<float>(std::as_bytes(std::span(scales + head * groups, groups)).data(), groups,
                     find_places(what, position, groups), block + kBlockPositions * size * sizeof code);
    }
  });
}

void KvCache::load(Cached what, std::size_t layer, std::size_t position, std::byte* codes, float* scales) const {
  const Layer& ring = layers_[layer];
  const std::size_t size = heads_.size;
  const std::size_t groups = type_->count_scales(size);
  const Bytes& bytes = what == Cached::keys ? ring.keys : ring.values;
  visit_code(*type_, [&](auto code) {
    for (std::size_t head = 0; head < heads_.count; ++head) {
      const std::byte* const block = bytes.data() + find_place_in_blocks(ring, head, position);
      gather<decltype(code)>(block, find_places(what, position, size), size, codes + head * size * sizeof code);
      gather<float>(block + kBlockPositions * size * sizeof code, find_places(what, position, groups), groups,
                    std::as_writable_bytes(std::span(scales + head * groups, groups)).data());
    }
  });
}

CachedRun KvCache::find_run(Cached what, std::size_t layer, std::size_t head, std::size_t first,
                            std::size_t last) const {
  const Layer& ring = layers_[layer];
  const Bytes& bytes = what == Cached::keys ? ring.keys : ring.values;
  const bool is_last = last == ring.end;
  return {.block = bytes.data() + find_place_in_blocks(ring, head, first),
          .first = first % kBlockPositions,
          .count = last - first,
          .next = is_last ? nullptr : bytes.data() + find_place_in_blocks(ring, head, last),
          .next_bytes = is_last ? 0 : block_bytes_};
}

}  // namespace poise
