// TextDivergence compares models with a base by their predictions for some texts. It computes the base's scores once,
// and keeps them: 4 bytes for each pair of a predicted token and a token of the vocabulary.
//
//   const TextDivergence divergence(base, texts);
//   const double nats = divergence.compute(load_weights(changed));
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

#include "runtime/transformer.hpp"

namespace poise {

// Returns the Kullback-Leibler divergence, the sum of P ln(P / Q), from the logits p and q. p_sum and q_sum are
// compute_log_sum_exp() of these, and finite.
double compute_divergence(std::span<const float> p, double p_sum, std::span<const float> q, double q_sum);

class TextDivergence {
 public:
  using Texts = std::vector<std::vector<TokenId>>;

  // All texts together have at most this many tokens: one pass computes them, and reads each weight once.
  static constexpr std::size_t kMostTokens = Transformer::kMaxBatch;

  // Computes the base's predictions of all tokens but the first of each text. Throws bad_argument for an unknown id,
  // and for a text that is longer than the base's context; unsupported for scores that are not finite, and for a base
  // without an output matrix. Requires: each text has two tokens or more, and all together have at most kMostTokens.
  TextDivergence(std::shared_ptr<const Weights> base, Texts texts);

  // Returns the divergence from the base's distribution to the model's, in nats: the mean over the predicted tokens.
  // Perplexity computes the same for these texts. Throws what the constructor throws. Requires: the model has
  // as many scores as the base.
  double compute(std::shared_ptr<const Weights> model) const;

  std::size_t count_predicted_tokens() const { return sums_.size(); }

 private:
  Texts texts_;
  std::vector<float> scores_;  // of the base: a row for each predicted token
  std::vector<double> sums_;   // compute_log_sum_exp() of the rows
};

}  // namespace poise
