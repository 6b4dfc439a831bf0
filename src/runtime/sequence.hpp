// Sequence: one text that a transformer computes: its cached keys and values, how far it has come, and memory to
// compute in.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/product.hpp"
#include "kernels/rotation.hpp"
#include "runtime/kv_cache.hpp"

namespace poise {

// What a feed-forward network computes in.
struct NetworkMemory {
  std::vector<float> gate;
  std::vector<float> up;
  std::vector<float> fused;
};

struct Sequence {
  explicit Sequence(KvCache empty) : cache(std::move(empty)) {}

  KvCache cache;
  Precision precision = Precision::fast;  // of products with weights
  std::size_t position = 0;               // tokens computed so far; 0 starts anew
  bool is_long = false;                   // computed as one that grew beyond Transformer::recompute_after()

  // Of the tokens computed last, each [tokens, size of one]. A transformer takes what it needs.
  std::vector<float> x;  // what goes from layer to layer
  std::vector<float> normed;
  std::vector<float> projected;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> attended;
  std::vector<float> fused;  // what one matrix of several gives
  NetworkMemory network;
  std::vector<float> scores;           // of experts
  std::vector<float> gathered;         // what an expert takes
  std::vector<float> expert_out;       // and gives
  std::vector<NetworkMemory> experts;  // of those that compute side by side
  std::vector<Rotation::Angles> angles;

  // Forgets all tokens; keeps the memory.
  void clear() {
    cache.clear();
    position = 0;
    is_long = false;
  }

  // x += y
  void add(const std::vector<float>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
};

}  // namespace poise
