// Sequence: the state of one text in a transformer: its cached keys and values, and its position.
#pragma once

#include <cstddef>
#include <span>

#include <poise/tokenizer.hpp>

#include "runtime/kv_cache.hpp"

namespace poise {

struct Sequence {
  explicit Sequence(KvCache empty) : cache(std::move(empty)) {}

  KvCache cache;
  std::size_t position = 0;  // tokens computed so far; 0 starts over
  bool is_long = false;      // computed as a sequence longer than Transformer::recompute_after()

  // Drops all tokens; keeps the memory.
  void clear() {
    cache.clear();
    position = 0;
    is_long = false;
  }
};

// Tokens to append to a sequence.
struct SequenceTokens {
  Sequence* sequence = nullptr;
  std::span<const TokenId> tokens = {};
};

}  // namespace poise
