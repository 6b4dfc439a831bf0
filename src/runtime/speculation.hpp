// Speculation: what a session computes ahead of its text, on guesses of a draft.
#pragma once

#include <deque>
#include <memory>
#include <stop_token>
#include <vector>

#include "runtime/computed_text.hpp"
#include "runtime/draft.hpp"
#include "runtime/session_threads.hpp"
#include "runtime/weights.hpp"

namespace poise {

class Speculation {
 public:
  // Throws bad_argument for options.draft that makes no sense. Requires: options.draft; the weights outlive this.
  Speculation(const Weights& weights, const SessionOptions& options);
  // For a copy of the text that was not computed ahead.
  Speculation(const Speculation& other);

  // The next token by the scores of the text.
  TokenId sample(Sampler& sampler, std::span<const float> scores);

  // Appends the pending token to a text with room for it: from what was computed ahead, or with guesses of what
  // follows. False, and nothing is ahead: there are no guesses. Throws cancelled, with the text as it was.
  bool feed(TokenId token, ComputedText& text, std::size_t room, SessionThreads& threads, Workspace& memory,
            const std::stop_token& stop);

  // Cuts the sequence back to the text.
  void forget(ComputedText& text);

  DraftCounts counts() const { return counts_; }

 private:
  struct Ahead {
    Guess guess;                      // of the next token
    std::vector<float> scores;        // after it
    std::vector<float> hidden_state;  // that these are computed from
  };
  std::vector<Guess> guesses(TokenId token, const ComputedText& text, std::size_t room);

  const Weights& weights_;
  const Transformer& transformer_;
  std::unique_ptr<Draft> draft_;
  bool draws_;                   // the draft draws its guesses
  Sampler sampler_ = Sampler();  // for that, apart from the tokens of the text
  GuessPace pace_;
  std::deque<Ahead> ahead_ = {};
  std::size_t round_ = 0;  // guesses of the last pass
  DraftCounts counts_ = {};
};

}  // namespace poise
