// KvCache: the keys and values of the positions that later ones may look at.
//
// A ring of `capacity` positions: position p lies in slot p % capacity. Memory is taken as positions come.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "runtime/kernels.hpp"

namespace poise {

class KvCache {
 public:
  // `width` floats of keys, and as many of values, per layer and position.
  KvCache(std::size_t layers, std::size_t width, std::size_t capacity);

  // Makes room for positions up to `end`. Call it before key() and value() of new positions.
  void reserve(std::size_t end);

  float* key(std::size_t layer, std::size_t position) { return at(keys_[layer], position); }
  float* value(std::size_t layer, std::size_t position) { return at(values_[layer], position); }

  // Columns from `offset` on of positions [first, last), in order, as two runs; the second is empty unless the ring wraps
  // between them. Requires: last - first <= capacity.
  using Runs = std::array<CachedRows, 2>;
  Runs keys(std::size_t layer, std::size_t first, std::size_t last, std::size_t offset) const { return runs(keys_[layer], first, last, offset); }
  Runs values(std::size_t layer, std::size_t first, std::size_t last, std::size_t offset) const { return runs(values_[layer], first, last, offset); }

 private:
  using Rows = std::vector<float>;
  float* at(Rows& rows, std::size_t position) const { return rows.data() + position % capacity_ * width_; }
  Runs runs(const Rows& rows, std::size_t first, std::size_t last, std::size_t offset) const;

  std::size_t width_;
  std::size_t capacity_;
  std::size_t reserved_ = 0;
  std::vector<Rows> keys_;
  std::vector<Rows> values_;
};

}  // namespace poise
