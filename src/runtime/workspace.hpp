// Workspace: a transformer's working memory. Callers keep one, so that it is not allocated for each token.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/product.hpp"
#include "kernels/rotation.hpp"
#include "runtime/parallel.hpp"

namespace poise {

// The working memory of a feed-forward network.
struct NetworkMemory {
  std::vector<float> gate;
  std::vector<float> up;
  std::vector<float> fused;
};

struct Workspace {
  Precision precision = Precision::fast;  // of products with weights

  // The layer whose hidden states forward() keeps, from 0 (the embedding) to Transformer::layers() (the final norm);
  // and these, of the tokens computed last: [tokens, Transformer::hidden_size()].
  std::optional<std::size_t> kept_layer;
  std::vector<float> kept;

  // Of the tokens computed last, each [tokens, width]. A transformer takes what it needs.
  std::vector<float> x;  // passed from layer to layer
  std::vector<float> normed;
  std::vector<float> projected;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> attended;
  std::vector<float> fused;  // the output of a matrix of several parts
  NetworkMemory network;
  std::vector<float> scores;                          // of experts
  std::vector<float> gathered;                        // the input of an expert
  std::vector<float> expert_out;                      // and its output
  std::vector<NetworkMemory> experts;                 // of experts that run in parallel
  std::vector<std::vector<Rotation::Angles>> angles;  // [sequences, rotary embeddings]

  // x += y
  void add(const std::vector<float>& y) {
    in_parallel(x.size(), kLeastNumbers, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) x[i] += y[i];
    });
  }
};

}  // namespace poise
