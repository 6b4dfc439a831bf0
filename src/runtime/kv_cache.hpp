// KvCache stores the keys and values to which later positions attend, in the form of a cache type.
//
// Each layer has a ring: position p is in slot p % capacity. Each head of keys or of values has a block for every
// kBlockPositions consecutive slots (kernels/cache_type.hpp). Memory grows with the number of positions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <poise/tokenizer.hpp>

#include "bytes/platform.hpp"
#include "kernels/cache_type.hpp"
#include "kernels/stored_rows.hpp"

namespace poise {

enum class Cached : std::uint8_t { keys, values };

// Describes the heads of a layer. There are as many heads of keys as of values.
struct CachedHeads {
  std::size_t count = 0;
  std::size_t size = 0;

  std::size_t width() const { return count * size; }
};

class KvCache {
 public:
  // `positions` states for each layer how many positions it must hold at least. `held` are the layers of this rank;
  // std::nullopt: all.
  KvCache(CacheType type, const CachedHeads& heads, const std::vector<std::size_t>& positions,
          const std::optional<IndexRange>& held = {});

  // Reserves memory for positions [0, end). Callers do this before they store new positions.
  void reserve(std::size_t end);

  // Returns the first position that the layer still has; rings drop old ones.
  std::size_t find_oldest_position(std::size_t layer) const;
  // Drops all positions; keeps the memory.
  void clear();

  const CacheTypeRow& type() const { return *type_; }
  std::size_t layers() const { return layers_.size(); }
  std::size_t width() const { return heads_.width(); }
  // Returns how many scales a layer has for the keys, or values, of a position.
  std::size_t count_scales() const { return heads_.count * type_->count_scales(heads_.size); }
  // Sets the positions of an empty layer to [first, last), without the oldest if they do not fit. store() then fills
  // them in.
  void set_positions(std::size_t layer, std::size_t first, std::size_t last);

  // Records that a layer of another rank has positions up to `end` - 1, as if they were stored here.
  void count_remote_positions(std::size_t layer, std::size_t end) {
    layers_[layer].end = std::max(layers_[layer].end, end);
  }

  // Stores a key and a value, [width] each. Throws unsupported for numbers that the cache type cannot hold.
  void encode_and_store(std::size_t layer, std::size_t position, const float* key, const float* value);

  // These functions load and store the keys or values of a position as the cache has them: codes [width] and scales
  // [count_scales()], head by head. load() requires a position that the layer has, store() one with reserved memory.
  void load(Cached what, std::size_t layer, std::size_t position, std::byte* codes, float* scales) const;
  void store(Cached what, std::size_t layer, std::size_t position, const std::byte* codes, const float* scales);

  // Returns positions [first, last) of a head. Requires: the layer has them, and one block has them all: `first` and
  // `last` - 1 have the same quotient by kBlockPositions.
  CachedRun find_run(Cached what, std::size_t layer, std::size_t head, std::size_t first, std::size_t last) const;

 private:
  using Bytes = std::vector<std::byte, HugePages<std::byte>>;

  struct Layer {
    std::size_t capacity = 0;  // a multiple of kBlockPositions
    std::size_t reserved = 0;
    std::size_t end = 0;  // one more than the last position
    Bytes keys = {};      // [blocks, heads, block_bytes_]
    Bytes values = {};
  };

  std::size_t find_place_in_blocks(const Layer& layer, std::size_t head, std::size_t position) const {
    return (position % layer.capacity / kBlockPositions * heads_.count + head) * block_bytes_;
  }
  void encode_and_store(Cached what, std::size_t layer, std::size_t position, const float* numbers);

  const CacheTypeRow* type_;
  CachedHeads heads_;
  std::size_t block_bytes_;
  std::vector<Layer> layers_;
  IndexRange held_;
};

// Holds the state of one text in a transformer: its cached keys and values, and its position.
struct Sequence {
  explicit Sequence(KvCache empty) : cache(std::move(empty)) {}

  KvCache cache;
  std::size_t position = 0;  // tokens computed so far
  bool is_long = false;      // true if it was computed as a sequence longer than Transformer::get_recompute_limit()

  // Drops all tokens; keeps the memory.
  void clear() {
    cache.clear();
    position = 0;
    is_long = false;
  }
};

// Names tokens to append to a sequence.
struct SequenceTokens {
  Sequence* sequence = nullptr;
  std::span<const TokenId> tokens = {};
};

}  // namespace poise
