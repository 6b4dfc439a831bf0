// ForwardPass: computes whole texts, one after the other, with the scores after each of their tokens.
//
//   pass.begin(tokens);
//   while (const std::size_t count = pass.compute_next()) pass.compute_logits(0, count, out);
//
// One thread at a time uses it; it computes with several.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

#include "runtime/computation.hpp"

namespace poise {

class ForwardPass : public Computation {
 public:
  // Throws bad_argument for options that the model or the system does not allow.
  ForwardPass(std::shared_ptr<const Weights> weights, const SessionOptions& options);

  // Begins a text. Throws bad_argument for an unknown id and for more tokens than the context has positions. Requires:
  // the tokens outlive the computation.
  void begin(std::span<const TokenId> tokens);

  // Computes the next tokens of the text, at most Transformer::kMaxBatch. Returns how many; 0 at its end. Two passes
  // over the same tokens take the same steps. Throws cancelled.
  std::size_t compute_next(const std::stop_token& stop = {});

  // Computes the scores after `count` tokens of the last compute_next(), from index `first` on: [count,
  // vocabulary_size()]. Throws cancelled.
  void compute_logits(std::size_t first, std::size_t count, std::vector<float>& out, const std::stop_token& stop = {});

  // Lets an observer see the inputs of all products with weights. Requires: it outlives the pass.
  void observe_inputs(InputObserver& observer) { memory_.observer = &observer; }

  // Returns the largest number of positions of a text.
  std::size_t positions() const { return context_; }

  // Runs `work` on the threads of this pass. Throws cancelled.
  void run(const std::stop_token& stop, const std::function<void()>& work) { threads_.run(stop, work); }

 private:
  Sequence sequence_;
  std::span<const TokenId> tokens_;
};

// Returns the token that the vocabulary begins texts with.
std::optional<TokenId> find_first_token(const Weights& weights);

// Checks that the scores of two models are of the same tokens. Throws bad_argument, naming the difference, for other
// numbers of scores, and for ids that are different texts in both. One of two vocabularies may be absent, or longer by
// names for rows that pad the embedding.
void require_same_vocabulary(const Weights& model, const Weights& base);

// Returns "\"token\" (17)".
std::string show_token(const Weights& weights, TokenId token);

}  // namespace poise
