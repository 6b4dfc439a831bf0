// KvCache: the keys and values of positions that later ones may attend to.
//
// A ring for each layer: position p is in slot p % capacity. Values of a slot are contiguous. Keys of kKeysTogether
// slots are interleaved, so that one vector holds the same element of several: scores then need no sums across lanes.
// Memory grows with the positions.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/aligned_floats.hpp"
#include "kernels/attention.hpp"

namespace poise {

// A head of a layer's keys and values, from column `offset` on, at positions [first, last).
struct CachedHead {
  std::size_t layer = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t offset = 0;
  std::size_t size = 0;
};

class KvCache {
 public:
  // `width` floats of keys, and as many of values, per layer and position; for at least `positions` positions.
  KvCache(std::size_t layers, std::size_t width, std::size_t positions);
  // The same, with each layer's own number of positions.
  KvCache(std::size_t width, const std::vector<std::size_t>& positions);

  // Reserves memory for positions up to `end`. Called before put() of new positions.
  void reserve(std::size_t end);

  // The first position that the layer still has; rings drop old ones.
  std::size_t oldest(std::size_t layer) const;
  // Drops all positions; keeps the memory.
  void clear();

  std::size_t layers() const { return layers_.size(); }
  std::size_t width() const { return width_; }
  // Makes an empty layer one that has positions [first, last), of which it drops those that do not fit; put() fills
  // them in.
  void resume(std::size_t layer, std::size_t first, std::size_t last);

  // key, value [width]
  void put(std::size_t layer, std::size_t position, const float* key, const float* value);

  // A position's own key or value: [width]. Requires: the layer has the position.
  void copy_key(std::size_t layer, std::size_t position, float* out) const;
  void copy_value(std::size_t layer, std::size_t position, float* out) const;

  // The contents of consecutive slots, in the order of positions: the second of two is empty unless the ring wraps
  // between them. Requires: at most as many positions as the cache holds.
  std::array<CachedKeys, 2> keys(const CachedHead& head) const;
  std::array<FloatRows, 2> values(const CachedHead& head) const;

 private:
  struct Slots {
    std::size_t begin;
    std::size_t count;
  };
  std::array<Slots, 2> slots(const CachedHead& head) const;

  struct Layer {
    std::size_t capacity = 0;  // a multiple of kKeysTogether
    std::size_t reserved = 0;
    std::size_t end = 0;  // after the last position
    AlignedFloats keys = {};
    AlignedFloats values = {};
  };

  std::size_t width_;
  std::vector<Layer> layers_;
};

}  // namespace poise
