// The weights of a decoder, by the names in its plan.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <poise/model.hpp>

#include "family/decoder_plan.hpp"
#include "runtime/feed_forward.hpp"
#include "runtime/projection.hpp"
#include "runtime/ranks.hpp"

namespace poise {

struct Norm {
  NormKind kind = NormKind::rms;
  float epsilon = 0;
  std::vector<float> weight = {};  // empty: no norm
  std::vector<float> bias = {};

  explicit operator bool() const { return !weight.empty(); }
  // For rows as long as the weight. Requires: there is one. `out` may be x.
  void apply(const float* x, std::size_t rows, float* out) const;
};

struct DecoderLayer {
  LayerPlan plan;
  Norm attention_norm;
  std::vector<Projection> qkv;
  Norm q_norm;
  Norm k_norm;
  std::vector<float> sinks;
  Projection o;
  Norm attention_post_norm;
  Norm mlp_norm;
  FeedForward mlp;  // without matrices if there are experts
  std::optional<Experts> experts;
  Norm mlp_post_norm;
};

struct DecoderWeights {
  std::unique_ptr<Matrix> embedding;
  std::unique_ptr<Matrix> positions;  // null: none
  Norm norm;
  std::unique_ptr<Matrix> output;  // null: the embedding, or none
  std::vector<float> rope_divisors;
  std::vector<DecoderLayer> layers;
};

// The share of a rank, by the plan of the whole model. Throws unsupported for what does not divide among the ranks.
// Requires: configuration and tensors have been checked; plan_of_rank() takes the plan.
DecoderWeights load_decoder(const Model& model, const DecoderPlan& plan, const Ranks& ranks);

}  // namespace poise
