// Workspace: the memory that a transformer computes in. A caller keeps one, so that it is not allocated for each token.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/product.hpp"
#include "kernels/rotation.hpp"

namespace poise {

// What a feed-forward network computes in.
struct NetworkMemory {
  std::vector<float> gate;
  std::vector<float> up;
  std::vector<float> fused;
};

struct Workspace {
  Precision precision = Precision::fast;  // of products with weights

  // Of the tokens computed last, each [tokens, width]. A transformer takes what it needs.
  std::vector<float> x;  // what goes from layer to layer
  std::vector<float> normed;
  std::vector<float> projected;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> attended;
  std::vector<float> fused;  // what one matrix of several gives
  NetworkMemory network;
  std::vector<float> scores;                          // of experts
  std::vector<float> gathered;                        // what an expert takes
  std::vector<float> expert_out;                      // and gives
  std::vector<NetworkMemory> experts;                 // of those that compute in parallel
  std::vector<std::vector<Rotation::Angles>> angles;  // [sequences, rotary embeddings]

  // x += y
  void add(const std::vector<float>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
};

}  // namespace poise
