// In speculative decoding, a Draft guesses the tokens that follow a text, and the session checks several guesses in one
// pass of its model.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <poise/session.hpp>

#include "runtime/computed_text.hpp"
#include "runtime/parallel.hpp"
#include "runtime/weights.hpp"

namespace poise {

class Draft {
 public:
  virtual ~Draft() = default;
  Draft& operator=(const Draft&) = delete;

  virtual std::unique_ptr<Draft> copy() const = 0;

  // Returns guesses of the tokens that follow `tokens`, at most `most` and perhaps none. A draft that draws at random
  // uses `sampler`. Throws what the draft's computation throws.
  virtual std::vector<Guess> guess(std::span<const TokenId> tokens, std::size_t most, Sampler& sampler) = 0;

 protected:
  Draft() = default;
  Draft(const Draft&) = default;
};

// Returns a draft that looks into the text itself: it guesses the tokens that followed an earlier occurrence of the
// last tokens.
std::unique_ptr<Draft> make_lookup_draft();
// Returns a draft that computes guesses with another, smaller model: options.draft->model. Throws bad_argument, which
// names the difference, if the vocabularies of the two models differ.
std::unique_ptr<Draft> make_model_draft(const Weights& weights, const SessionOptions& options);

// Decides how many tokens to guess: more after guesses that were right, fewer after wrong ones, and none for a while
// after guesses that cost more than they saved. The number depends only on earlier guesses, not on time, so that a seed
// always gives the same text.
class GuessPace {
 public:
  explicit GuessPace(std::size_t most) : most_(most), size_(std::min<std::size_t>(most, 8)) {}

  // Returns the number for the next pass; 0: none.
  std::size_t choose_next_count();
  void record_check(std::size_t guessed, std::size_t right);

 private:
  std::size_t most_;
  std::size_t size_;
  std::size_t pause_ = 0;       // how many passes without guesses are left
  std::size_t next_pause_ = 1;  // the length of the next pause
};

// Holds the tokens that a session has computed ahead of its text, because a draft guessed them.
class Speculation {
 public:
  // Throws bad_argument for invalid options.draft. Requires: options.draft is set; the weights outlive this.
  Speculation(const Weights& weights, const SessionOptions& options);
  // Copies the draft and the pace, but neither the tokens computed ahead nor the counts.
  Speculation(const Speculation& other);

  // Samples the next token from the scores after the text. If the draft has guessed it, accepts or rejects the guess.
  TokenId sample(Sampler& sampler, std::span<const float> scores);

  // Appends the pending token to a text that has room for `room` more tokens. Takes the scores from the tokens computed
  // ahead, or computes the token together with guesses of the next ones. Returns false, without appending, if the token
  // was not computed ahead and there are no guesses. Throws cancelled, with the text unchanged.
  bool feed(TokenId token, ComputedText& text, std::size_t room, SessionThreads& threads, Workspace& memory,
            const std::stop_token& stop);

  // Drops the tokens computed ahead, so that the sequence ends with the text.
  void drop_guesses(ComputedText& text);

  DraftCounts counts() const { return counts_; }

 private:
  struct Ahead {
    Guess guess;                      // the guess of the next token
    std::vector<float> scores;        // the scores after that token
    std::vector<float> hidden_state;  // the scores are computed from it
  };
  std::vector<Guess> make_guesses(TokenId token, const ComputedText& text, std::size_t room);

  const Weights& weights_;
  const Transformer& transformer_;
  std::unique_ptr<Draft> draft_;
  bool draws_;                   // true if the draft draws its guesses at random
  Sampler sampler_ = Sampler();  // draws the guesses; its random numbers are not those of the text
  GuessPace pace_;
  std::deque<Ahead> ahead_ = {};
  std::size_t round_ = 0;  // guesses of the last pass
  DraftCounts counts_ = {};
};

}  // namespace poise
