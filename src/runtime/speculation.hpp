// Draft: guesses of the tokens that follow a text. A session checks several in one pass of its model.
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

  // Returns at most `most` tokens that may follow `tokens`, as `sampler` draws them; perhaps none. Throws what the
  // draft's computation throws.
  virtual std::vector<Guess> guess(std::span<const TokenId> tokens, std::size_t most, Sampler& sampler) = 0;

 protected:
  Draft() = default;
  Draft(const Draft&) = default;
};

// Returns a draft from the text itself: the tokens that followed an earlier occurrence of the last tokens.
std::unique_ptr<Draft> make_lookup_draft();
// Returns a draft from another model. Throws bad_argument, naming the difference, for one with another vocabulary.
std::unique_ptr<Draft> make_model_draft(const Weights& weights, const SessionOptions& options);

// Decides how many tokens to guess: more after guesses that were right, fewer after wrong ones, and none for a while
// after guesses that cost more than they saved. The number depends on these alone, so that a seed gives the same text
// each time.
class GuessPace {
 public:
  explicit GuessPace(std::size_t most) : most_(most), size_(std::min<std::size_t>(most, 8)) {}

  // Returns the number for the next pass; 0: none.
  std::size_t choose_next();
  void record_check(std::size_t guessed, std::size_t right);

 private:
  std::size_t most_;
  std::size_t size_;
  std::size_t pause_ = 0;       // passes without guesses
  std::size_t next_pause_ = 1;  // the length of the next one
};

// Holds the tokens that a session computes ahead of its text, on guesses of a draft.
class Speculation {
 public:
  // Throws bad_argument for options.draft that makes no sense. Requires: options.draft; the weights outlive this.
  Speculation(const Weights& weights, const SessionOptions& options);
  // Copies for a text without the tokens that were computed ahead.
  Speculation(const Speculation& other);

  // Returns the next token by the scores of the text.
  TokenId sample(Sampler& sampler, std::span<const float> scores);

  // Appends the pending token to a text with room for it: takes it from the tokens computed ahead, or computes it with
  // guesses of the next ones. Returns false, with no token ahead, if there are no guesses. Throws cancelled, with the
  // text as it was.
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
  std::vector<Guess> make_guesses(TokenId token, const ComputedText& text, std::size_t room);

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
