#include "runtime/speculation.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {
namespace {

constexpr std::size_t kMost = 64;

const DraftOptions& checked(const DraftOptions& draft) {
  if (draft.most == 0 || draft.most > kMost) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("a draft of {} tokens at a time, expected 1 to {}", draft.most, kMost));
  }
  return draft;
}

}  // namespace

Speculation::Speculation(const Weights& weights, const SessionOptions& options)
    : weights_(weights),
      transformer_(*weights.parts().transformer),
      draft_(checked(*options.draft).model ? make_model_draft(weights, options) : make_lookup_draft()),
      draws_(options.draft->model != nullptr),
      pace_(options.draft->most) {}

Speculation::Speculation(const Speculation& other)
    : weights_(other.weights_),
      transformer_(other.transformer_),
      draft_(other.draft_->copy()),
      draws_(other.draws_),
      sampler_(other.sampler_),
      pace_(other.pace_) {}

TokenId Speculation::sample(Sampler& sampler, std::span<const float> scores) {
  const TokenId token = ahead_.empty() ? sampler.sample(scores) : sampler.sample(scores, ahead_.front().guess);
  // The guesses after this token are drawn apart from the tokens of the text.
  if (draws_ && (ahead_.empty() || ahead_.front().guess.token != token)) sampler_ = sampler.branch();
  return token;
}

bool Speculation::feed(TokenId token, ComputedText& text, std::size_t room, SessionThreads& threads, Workspace& memory,
                       const std::stop_token& stop) {
  if (!ahead_.empty() && ahead_.front().guess.token == token) {
    text.tokens.push_back(token);
    text.logits = std::move(ahead_.front().scores);
    text.hidden_state = std::move(ahead_.front().hidden_state);
    text.pending.reset();
    ahead_.pop_front();
    ++counts_.right;
    if (ahead_.empty()) {
      pace_.checked(round_, round_);
      round_ = 0;
    }
    return true;
  }
  forget(text);
  std::vector<Guess> next = guesses(token, text, room);
  if (next.empty()) return false;
  std::vector<TokenId> tokens = {token};
  for (const Guess& guess : next) tokens.push_back(guess.token);
  std::vector<std::size_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const std::size_t size = transformer_.vocabulary_size();
  std::vector<float> scores(rows.size() * size);
  // The scores that each token would have by itself.
  const Precision precision = memory.precision;
  if (precision == Precision::fast) memory.precision = Precision::apart;
  const auto restore = [&] { memory.precision = precision; };
  try {
    threads.run(stop, [&] {
      transformer_.forward(std::array{SequenceTokens{&text.sequence, tokens}}, memory);
      transformer_.logits(rows, memory, scores.data());
    });
  } catch (...) {
    restore();
    forget(text);
    throw;
  }
  restore();
  const auto row = [](const std::vector<float>& rows_of, std::size_t length, std::size_t i) {
    const auto begin = rows_of.begin() + static_cast<std::ptrdiff_t>(i * length);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(length));
  };
  const std::size_t hidden_size = transformer_.hidden_size();
  text.tokens.push_back(token);
  text.logits = row(scores, size, 0);
  text.hidden_state = row(memory.normed, hidden_size, 0);
  text.pending.reset();
  round_ = next.size();
  counts_.guessed += next.size();
  for (std::size_t i = 0; i < next.size(); ++i)
    ahead_.push_back({std::move(next[i]), row(scores, size, i + 1), row(memory.normed, hidden_size, i + 1)});
  return true;
}

void Speculation::forget(ComputedText& text) {
  if (!ahead_.empty()) pace_.checked(round_, round_ - ahead_.size());
  ahead_.clear();
  round_ = 0;
  if (text.sequence.position <= text.tokens.size()) return;
  if (!transformer_.truncate(text.tokens.size(), text.sequence))
    throw Error(ErrorKind::internal, "a sequence cannot go back over its last guesses");
}

std::vector<Guess> Speculation::guesses(TokenId token, const ComputedText& text, std::size_t room) {
  std::size_t most = std::min(pace_.next(), room - 1);
  // A text that becomes long is computed again, without guesses.
  if (const std::size_t longest = transformer_.recompute_after(); longest != 0 && !text.sequence.is_long) {
    const std::size_t size = text.tokens.size() + 1;
    most = std::min(most, longest - std::min(longest, size));
  }
  if (most == 0) return {};
  std::vector<TokenId> tokens = text.tokens;
  tokens.push_back(token);
  std::vector<Guess> result = draft_->guess(tokens, most, sampler_);
  const auto unknown = std::ranges::find_if(result, [&](const Guess& guess) {
    return static_cast<std::size_t>(guess.token) >= transformer_.vocabulary_size();
  });
  result.erase(unknown, result.end());
  return result;
}

}  // namespace poise
