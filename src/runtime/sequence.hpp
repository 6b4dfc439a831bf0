// Sequence: one text that a transformer computes: its cached keys and values, and how far it has come.
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
  bool is_long = false;      // computed as one that grew beyond Transformer::recompute_after()

  // Forgets all tokens; keeps the memory.
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
