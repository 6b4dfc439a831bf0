#include "runtime/speculation.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

std::size_t GuessPace::choose_next_count() {
  if (pause_ == 0) return size_;
  --pause_;
  return 0;
}

void GuessPace::record_check(std::size_t guessed, std::size_t right) {
  constexpr std::size_t kLeast = 4;
  constexpr std::size_t kLongestPause = 32;
  if (right == guessed) {
    size_ = std::min(most_, 2 * size_);
  } else if (2 * right < guessed) {
    size_ = std::min(most_, std::max(kLeast, size_ / 2));
  }
  // Guesses pay off if a third of them is right: a pass for several tokens takes as long as two or three passes for one
  // token.
  if (3 * right >= guessed) {
    next_pause_ = 1;
    return;
  }
  pause_ = next_pause_;
  next_pause_ = std::min(kLongestPause, 2 * next_pause_);
}

namespace {

constexpr std::size_t kMost = 64;

const DraftOptions& require_valid(const DraftOptions& draft) {
  if (draft.most == 0 || draft.most > kMost) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("a draft of {} tokens at a time, expected 1 to {}", draft.most, kMost));
  }
  return draft;
}

[[noreturn]] void refuse(const std::string& difference) {
  throw Error(ErrorKind::bad_argument, "the draft has another vocabulary than the model: " + difference);
}

void require_draft_vocabulary(const Weights& model, const Weights& draft) {
  if (!model.has_tokenizer() || !draft.has_tokenizer()) {
    if (model.vocabulary_size() == draft.vocabulary_size()) return;
    refuse(fmt::format("{} tokens, not {}", draft.vocabulary_size(), model.vocabulary_size()));
  }
  const Vocabulary& ours = model.tokenizer().vocabulary();
  const Vocabulary& its = draft.tokenizer().vocabulary();
  for (std::size_t id = 0; id < std::min(ours.size(), its.size()); ++id) {
    if (ours.text(id) == its.text(id)) continue;
    refuse(fmt::format("token {} is {}, not {}", id, to_json(std::string(its.text(id))),
                       to_json(std::string(ours.text(id)))));
  }
  if (ours.size() != its.size()) refuse(fmt::format("{} tokens, not {}", its.size(), ours.size()));
}

class ModelDraft final : public Draft {
 public:
  ModelDraft(std::shared_ptr<const Weights> weights, const SessionOptions& options)
      : weights_(weights), session_(std::move(weights), options) {}
  ModelDraft(const ModelDraft& other) : Draft(other), weights_(other.weights_), session_(other.session_.fork()) {}

  std::unique_ptr<Draft> copy() const override { return std::make_unique<ModelDraft>(*this); }

  std::vector<Guess> guess(std::span<const TokenId> tokens, std::size_t most, Sampler& sampler) override {
    std::vector<Guess> guesses;
    if (tokens.empty() || tokens.size() > session_.context()) return guesses;
    feed_missing_tokens(tokens);
    most = std::min(most, session_.context() - tokens.size() + 1);
    while (guesses.size() < most) {
      if (!guesses.empty()) session_.feed(std::array{guesses.back().token});
      guesses.push_back(sampler.guess(drop_padding_scores(*weights_, session_.logits())));
    }
    return guesses;
  }

 private:
  // Makes `tokens` the text of the draft's session: drops tokens that differ, and feeds those that the session lacks.
  void feed_missing_tokens(std::span<const TokenId> tokens) {
    const std::span<const TokenId> known = session_.tokens();
    const auto differs = std::mismatch(tokens.begin(), tokens.end(), known.begin(), known.end()).first;
    // If all tokens are known, the last one is computed again for its scores.
    const std::size_t same = std::min(static_cast<std::size_t>(differs - tokens.begin()), tokens.size() - 1);
    session_.truncate(same);
    session_.feed(tokens.subspan(same));
  }

  std::shared_ptr<const Weights> weights_;
  Session session_;
};

class LookupDraft final : public Draft {
 public:
  std::unique_ptr<Draft> copy() const override { return std::make_unique<LookupDraft>(*this); }

  std::vector<Guess> guess(std::span<const TokenId> tokens, std::size_t most, Sampler&) override {
    const std::size_t begin = find_earlier_continuation(tokens);
    std::vector<Guess> guesses;
    if (begin == 0) return guesses;
    // If the guesses reach the end of the text, they go on with the first guesses again.
    for (std::size_t i = begin; guesses.size() < most; ++i)
      guesses.push_back({i < tokens.size() ? tokens[i] : guesses[i - tokens.size()].token});
    return guesses;
  }

 private:
  // Finds the longest run of 2 to 8 tokens that ends the text and also occurs earlier, and returns the place after its
  // last earlier occurrence. Returns 0 if there is none.
  static std::size_t find_earlier_continuation(std::span<const TokenId> tokens) {
    constexpr std::size_t kLeast = 2;
    constexpr std::size_t kLongest = 8;
    std::size_t best = 0;
    std::size_t longest = kLeast - 1;
    for (std::size_t end = tokens.size() - std::min<std::size_t>(tokens.size(), 1); end > 0; --end) {
      std::size_t same = 0;
      while (same < std::min(kLongest, end) && tokens[end - 1 - same] == tokens[tokens.size() - 1 - same]) ++same;
      if (same <= longest) continue;
      best = end;
      longest = same;
      if (longest == kLongest) break;
    }
    return best;
  }
};

}  // namespace

Speculation::Speculation(const Weights& weights, const SessionOptions& options)
    : weights_(weights),
      transformer_(*weights.parts().transformer),
      draft_(require_valid(*options.draft).model ? make_model_draft(weights, options) : make_lookup_draft()),
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
  // The draft draws the guesses after this token with its own random numbers, so that it does not change the text's.
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
      pace_.record_check(round_, round_);
      round_ = 0;
    }
    return true;
  }
  drop_guesses(text);
  std::vector<Guess> next = make_guesses(token, text, room);
  if (next.empty()) return false;
  std::vector<TokenId> tokens = {token};
  for (const Guess& guess : next) tokens.push_back(guess.token);
  std::vector<std::size_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const std::size_t size = transformer_.vocabulary_size();
  std::vector<float> scores(rows.size() * size);
  // Each token gets the scores that it would have by itself.
  const Precision precision = memory.precision;
  if (precision == Precision::fast) memory.precision = Precision::apart;
  const auto restore_precision = [&] { memory.precision = precision; };
  try {
    threads.run(stop, [&] {
      transformer_.forward(std::array{SequenceTokens{&text.sequence, tokens}}, memory);
      transformer_.compute_logits(rows, memory, scores.data());
    });
  } catch (...) {
    restore_precision();
    drop_guesses(text);
    throw;
  }
  restore_precision();
  const auto copy_row = [](const std::vector<float>& rows_of, std::size_t length, std::size_t i) {
    const auto begin = rows_of.begin() + static_cast<std::ptrdiff_t>(i * length);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(length));
  };
  const std::size_t hidden_size = transformer_.hidden_size();
  text.tokens.push_back(token);
  text.logits = copy_row(scores, size, 0);
  text.hidden_state = copy_row(memory.normed, hidden_size, 0);
  text.pending.reset();
  round_ = next.size();
  counts_.guessed += next.size();
  for (std::size_t i = 0; i < next.size(); ++i)
    ahead_.push_back({std::move(next[i]), copy_row(scores, size, i + 1), copy_row(memory.normed, hidden_size, i + 1)});
  return true;
}

void Speculation::drop_guesses(ComputedText& text) {
  if (!ahead_.empty()) pace_.record_check(round_, round_ - ahead_.size());
  ahead_.clear();
  round_ = 0;
  if (text.sequence.position <= text.tokens.size()) return;
  if (!transformer_.truncate(text.tokens.size(), text.sequence))
    throw Error(ErrorKind::internal, "a sequence cannot go back over its last guesses");
}

std::vector<Guess> Speculation::make_guesses(TokenId token, const ComputedText& text, std::size_t room) {
  std::size_t most = std::min(pace_.choose_next_count(), room - 1);
  // A text that exceeds the limit is computed again, without guesses.
  if (const std::size_t longest = transformer_.get_recompute_limit(); longest != 0 && !text.sequence.is_long) {
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

std::unique_ptr<Draft> make_model_draft(const Weights& weights, const SessionOptions& options) {
  const std::shared_ptr<const Weights>& draft = options.draft->model;
  require_draft_vocabulary(weights, *draft);
  const std::size_t context = find_context(weights, options);
  return std::make_unique<ModelDraft>(draft, SessionOptions{.threads = options.threads,
                                                            .context = std::min(context, draft->max_context()),
                                                            .exact = options.exact,
                                                            .cache = options.cache});
}

std::unique_ptr<Draft> make_lookup_draft() { return std::make_unique<LookupDraft>(); }

}  // namespace poise
