// ForwardPass computes whole texts, one after the other, and the scores after each of their tokens.
//
//   pass.begin_text(tokens);
//   while (const std::size_t count = pass.compute_next_tokens()) pass.compute_logits(0, count, out);
//
// Only one thread at a time may use it. It computes with several threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
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
  void begin_text(std::span<const TokenId> tokens);

  // Computes the next tokens of the text, at most Transformer::kMaxBatch. Returns how many; 0 at the end of the text.
  // The division into batches depends only on the number of tokens. Throws cancelled.
  std::size_t compute_next_tokens(const std::stop_token& stop = {});

  // Computes the scores after `count` tokens of the last compute_next_tokens(), from index `first` on: [count,
  // vocabulary_size()]. Throws cancelled.
  void compute_logits(std::size_t first, std::size_t count, std::vector<float>& out, const std::stop_token& stop = {});

  // Makes later passes call the observer with the inputs of all products with weights. Requires: the observer outlives
  // this.
  void observe_inputs(InputObserver& observer) { memory_.observer = &observer; }

  std::size_t max_positions() const { return context_; }

  // Runs `work` on the threads of this pass. Throws cancelled.
  void run(const std::stop_token& stop, const std::function<void()>& work) { threads_.run(stop, work); }

 private:
  Sequence sequence_;
  std::span<const TokenId> tokens_;
};

// Returns the tokens of Tokenizer::encode_with_special(), with EOS at the end if the vocabulary has it.
std::vector<TokenId> encode_with_end(const Weights& weights, std::string_view text);

// Returns BOS if texts begin with it in this vocabulary; std::nullopt if they do not.
std::optional<TokenId> find_first_token(const Weights& weights);

// Checks that two models have scores for the same tokens. Throws bad_argument, which names the difference, if the
// numbers of scores differ, or if an id stands for different texts. A vocabulary may be absent, or have additional
// names for rows that only pad the embedding.
void require_same_vocabulary(const Weights& model, const Weights& base);

// Returns "\"token\" (17)".
std::string format_token(const Weights& weights, TokenId token);

}  // namespace poise
