// Draft: guesses of the tokens that follow a text. A session checks several in one pass of its model.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <poise/session.hpp>

namespace poise {

class Draft {
 public:
  virtual ~Draft() = default;
  Draft& operator=(const Draft&) = delete;

  virtual std::unique_ptr<Draft> copy() const = 0;

  // At most `most` tokens that may follow `tokens`, as `sampler` draws them; perhaps none. Throws what the draft's
  // computation throws.
  virtual std::vector<Guess> guess(std::span<const TokenId> tokens, std::size_t most, Sampler& sampler) = 0;

 protected:
  Draft() = default;
  Draft(const Draft&) = default;
};

// What followed the last tokens where the text had them before.
std::unique_ptr<Draft> make_lookup_draft();
// What another model says. Throws bad_argument, naming the difference, for one with another vocabulary.
std::unique_ptr<Draft> make_model_draft(const Weights& weights, const SessionOptions& options);

// How many tokens to guess: more after guesses that were right, fewer after wrong ones, and none for a while after
// guesses that cost more than they saved. Depends on nothing else, so that a seed gives the same text each time.
class GuessPace {
 public:
  explicit GuessPace(std::size_t most) : most_(most), size_(std::min<std::size_t>(most, 8)) {}

  // For the next pass; 0: none.
  std::size_t next();
  void checked(std::size_t guessed, std::size_t right);

 private:
  std::size_t most_;
  std::size_t size_;
  std::size_t pause_ = 0;       // passes without guesses
  std::size_t next_pause_ = 1;  // the length of the next one
};

}  // namespace poise
