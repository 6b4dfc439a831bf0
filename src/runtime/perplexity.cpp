#include <poise/perplexity.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <poise/error.hpp>

#include "runtime/computation.hpp"
#include "runtime/forward_pass.hpp"
#include "runtime/text_divergence.hpp"
#include "tokenizer/tokens/merge.hpp"

namespace poise {

// This namespace has a name because Perplexity::State, which other files can see, holds these types.
namespace perplexity {

// Computes the mean of numbers, and its standard error, by Welford's algorithm.
class Mean {
 public:
  void add(double x) {
    const double before = x - mean_;
    mean_ += before / ++count_;
    squares_ += before * (x - mean_);
  }
  double value() const { return mean_; }
  double compute_standard_error() const {
    if (count_ < 2) return std::numeric_limits<double>::quiet_NaN();
    return std::sqrt(squares_ / (count_ - 1) / count_);
  }
  Estimate make_estimate() const { return {value(), compute_standard_error()}; }
  // Returns exp(mean), with its standard error to first order.
  Estimate estimate_exponential() const { return {std::exp(mean_), std::exp(mean_) * compute_standard_error()}; }

 private:
  double count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

// Holds the predictions of two models for one token.
struct Prediction {
  double log_probability = 0;
  double of_base = 0;
  double divergence = 0;  // Kullback-Leibler divergence from the base to the model, in nats
  bool same_top = false;
};

// Holds rows of scores. Each row predicts one token of a text.
class Rows {
 public:
  explicit Rows(std::size_t width) : width_(width) {}
  std::vector<float>& numbers() { return numbers_; }
  std::span<const float> operator[](std::size_t i) const { return std::span(numbers_).subspan(i * width_, width_); }

 private:
  std::size_t width_;
  std::vector<float> numbers_;
};

}  // namespace perplexity

namespace {

std::ptrdiff_t find_top(std::span<const float> scores) { return std::ranges::max_element(scores) - scores.begin(); }

perplexity::Prediction compute_prediction(TokenId token, std::span<const float> scores,
                                          std::span<const float> of_base) {
  const auto at = static_cast<std::size_t>(token);
  const double sum = compute_log_sum_exp(scores);
  perplexity::Prediction result = {.log_probability = static_cast<double>(scores[at]) - sum};
  if (of_base.empty()) return result;
  const double base_sum = compute_log_sum_exp(of_base);
  result.of_base = static_cast<double>(of_base[at]) - base_sum;
  // compute_divergence() requires finite sums.
  const bool are_numbers = std::isfinite(sum) && std::isfinite(base_sum);
  result.divergence = are_numbers ? compute_divergence(of_base, base_sum, scores, sum) : sum - base_sum;
  result.same_top = find_top(scores) == find_top(of_base);
  return result;
}

}  // namespace

class Perplexity::State {
 public:
  State(std::shared_ptr<const Weights> model, std::shared_ptr<const Weights> base, const SessionOptions& options)
      : model_(model, options), scores_(model->vocabulary_size()), base_scores_(model->vocabulary_size()) {
    if (!base) return;
    require_same_vocabulary(*model, *base);
    base_.emplace(std::move(base), options);
  }

  // Encodes the text; appends EOS if `with_end` is true and the vocabulary has one. Throws bad_argument if the base's
  // tokenizer makes other tokens.
  std::vector<TokenId> encode(std::string_view text, bool with_end) const {
    std::vector<TokenId> tokens = encode(model_.weights(), text, with_end);
    if (base_ && base_->weights().has_tokenizer())
      require_same_tokens(tokens, encode(base_->weights(), text, with_end));
    return tokens;
  }

  void add(std::span<const TokenId> tokens, const Progress& progress, const std::stop_token& stop) {
    Sums sums = sums_;  // a copy: if this text fails, the sums of earlier texts stay
    add_text_predictions(tokens, 1, sums, stop, [&](std::size_t done) {
      if (progress && !progress({done, tokens.size(), "tokens"})) throw_cancelled();
    });
    ++sums.texts;
    sums_ = sums;
  }

  void add_windows(std::span<const TokenId> tokens, const PerplexityWindows& windows, const Progress& progress,
                   const std::stop_token& stop) {
    const std::vector<Window> all = make_windows(tokens.size(), windows);
    const std::optional<TokenId> bos = windows.stride == 0 ? find_first_token(model_.weights()) : std::nullopt;
    std::size_t total = 0;
    for (const Window& window : all) total += window.size;
    std::size_t before = 0;
    Sums sums = sums_;
    for (const Window& window : all) {
      std::vector<TokenId> part(tokens.begin() + static_cast<std::ptrdiff_t>(window.begin),
                                tokens.begin() + static_cast<std::ptrdiff_t>(window.begin + window.size));
      if (bos) part.front() = *bos;
      add_text_predictions(part, window.first_predicted, sums, stop, [&](std::size_t done) {
        if (progress && !progress({before + done, total, "tokens"})) throw_cancelled();
      });
      before += window.size;
      ++sums.windows;
    }
    ++sums.texts;
    sums_ = sums;
  }

  PerplexityResult result() const {
    if (sums_.tokens == 0)
      throw Error(ErrorKind::bad_argument,
                  "no text with a token to predict has been added: add one of two tokens or more");
    PerplexityResult result = {.texts = sums_.texts,
                               .windows = sums_.windows,
                               .tokens = sums_.tokens,
                               .perplexity = compute_finite_estimate("the perplexity", sums_.loss)};
    if (base_) {
      result.against = {.base_perplexity = compute_finite_estimate("the perplexity of the base", sums_.base_loss),
                        .ratio = compute_finite_estimate("the ratio of the perplexities", sums_.difference),
                        .kl_mean = sums_.divergence.make_estimate(),
                        .kl_max = sums_.worst,
                        .same_top = sums_.same_top.make_estimate()};
    }
    return result;
  }

 private:
  struct Sums {
    std::size_t texts = 0;
    std::size_t windows = 0;
    std::size_t tokens = 0;
    perplexity::Mean loss;
    perplexity::Mean base_loss;
    perplexity::Mean difference;
    perplexity::Mean divergence;
    double worst = 0;
    perplexity::Mean same_top;
  };

  // Names tokens of a document that are computed together, without the tokens before them.
  struct Window {
    std::size_t begin = 0;
    std::size_t size = 0;
    std::size_t first_predicted = 1;  // the index in the window of the first token that is scored
  };

  std::vector<Window> make_windows(std::size_t tokens, const PerplexityWindows& windows) const {
    constexpr std::size_t kLeast = 4;
    const auto refuse = [](const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); };
    const auto& [size, stride] = windows;
    if (size < kLeast || size > model_.max_positions())
      refuse(fmt::format("windows of {} tokens, expected {} to {}, the context", size, kLeast, model_.max_positions()));
    if (base_ && size > base_->max_positions())
      refuse(fmt::format("windows of {} tokens, more than the base's context of {}", size, base_->max_positions()));
    if (stride > size) refuse(fmt::format("windows of {} tokens every {} tokens leave some out", size, stride));
    std::vector<Window> all;
    if (stride == 0) {
      for (std::size_t begin = 0; tokens - begin >= size; begin += size) all.push_back({begin, size, size / 2 + 1});
      if (all.empty()) refuse(fmt::format("the document has {} tokens, fewer than a window of {}", tokens, size));
      return all;
    }
    if (tokens < 2) refuse("the document has no token to predict: it needs two tokens or more");
    for (std::size_t begin = 0, end = 0; end < tokens; begin += stride) {
      const std::size_t known = end;
      end = std::min(begin + size, tokens);
      all.push_back({begin, end - begin, std::max<std::size_t>(known - begin, 1)});
    }
    return all;
  }

  // Adds the predictions of tokens from index `first_predicted` on, and calls `done` with the number of tokens computed
  // so far.
  template <typename Done>
  void add_text_predictions(std::span<const TokenId> tokens, std::size_t first_predicted, Sums& sums,
                            const std::stop_token& stop, const Done& done) {
    begin_text(tokens);
    std::size_t first = 0;
    while (const std::size_t count = model_.compute_next_tokens(stop)) {
      if (base_) base_->compute_next_tokens(stop);
      const std::size_t predicted = std::min(count, tokens.size() - 1 - first);
      // Row i of a batch predicts the token after the batch's token i.
      const std::size_t skipped = std::min(predicted, first_predicted - 1 - std::min(first, first_predicted - 1));
      for (std::size_t at = skipped, rows = 0; at < predicted; at += rows) {
        rows = Transformer::count_next_tokens(predicted - at, Transformer::kScoreRows);
        add_predictions(tokens.subspan(first + at + 1, rows), at, first + at + 1, sums, stop);
      }
      first += count;
      done(first);
    }
  }

  void begin_text(std::span<const TokenId> tokens) {
    try {
      model_.begin_text(tokens);
      if (base_) base_->begin_text(tokens);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("text {}: {}", sums_.texts + 1, error.message()));
    }
  }

  static std::vector<TokenId> encode(const Weights& weights, std::string_view text, bool with_end) {
    return with_end ? encode_with_end(weights, text) : weights.tokenizer().encode_with_special(text);
  }

  void require_same_tokens(std::span<const TokenId> tokens, std::span<const TokenId> of_base) const {
    const auto [ours, theirs] = std::ranges::mismatch(tokens, of_base);
    if (ours == tokens.end() && theirs == of_base.end()) return;
    const auto format_token_or_end = [](auto at, auto end, const Weights& weights) {
      return at == end ? std::string("the end") : format_token(weights, *at);
    };
    throw Error(
        ErrorKind::bad_argument,
        fmt::format("text {}: token {} is {}, and {} in the base, whose vocabulary splits texts in another way",
                    sums_.texts + 1, ours - tokens.begin(), format_token_or_end(ours, tokens.end(), model_.weights()),
                    format_token_or_end(theirs, of_base.end(), base_->weights())));
  }

  // Adds the predictions of tokens. The first token has index `place` in its text, and row `first` of the last
  // compute_next_tokens() predicts it.
  void add_predictions(std::span<const TokenId> tokens, std::size_t first, std::size_t place, Sums& sums,
                       const std::stop_token& stop) {
    model_.compute_logits(first, tokens.size(), scores_.numbers(), stop);
    if (base_) base_->compute_logits(first, tokens.size(), base_scores_.numbers(), stop);
    std::vector<perplexity::Prediction> predictions(tokens.size());
    model_.run(stop, [&] {
      tbb::parallel_for(std::size_t{0}, tokens.size(), [&](std::size_t i) {
        predictions[i] = compute_prediction(tokens[i], scores_[i], base_ ? base_scores_[i] : std::span<const float>());
      });
      throw_if_cancelled();
    });
    for (std::size_t i = 0; i < tokens.size(); ++i) add_prediction(predictions[i], tokens[i], place + i, sums);
  }

  void add_prediction(const perplexity::Prediction& prediction, TokenId token, std::size_t place, Sums& sums) const {
    const auto require_finite = [&](std::string_view what, double value) {
      if (std::isfinite(value)) return;
      refuse_non_finite(fmt::format("text {}: {} token {}, which is {},", sums.texts + 1, what, place, token), value);
    };
    require_finite("the logarithm of the probability of", prediction.log_probability);
    ++sums.tokens;
    sums.loss.add(-prediction.log_probability);
    if (!base_) return;
    require_finite("the base's logarithm of the probability of", prediction.of_base);
    require_finite("the divergence from the base at", prediction.divergence);
    sums.base_loss.add(-prediction.of_base);
    sums.difference.add(prediction.of_base - prediction.log_probability);
    sums.divergence.add(prediction.divergence);
    sums.worst = std::max(sums.worst, prediction.divergence);
    sums.same_top.add(prediction.same_top ? 1 : 0);
  }

  static Estimate compute_finite_estimate(const std::string& what, const perplexity::Mean& mean) {
    const Estimate result = mean.estimate_exponential();
    if (!std::isfinite(result.value)) refuse_non_finite(what, result.value);
    return result;
  }

  ForwardPass model_;
  std::optional<ForwardPass> base_;
  perplexity::Rows scores_;
  perplexity::Rows base_scores_;
  Sums sums_;
};

Perplexity::Perplexity(std::shared_ptr<const Weights> model, std::shared_ptr<const Weights> base,
                       const SessionOptions& options)
    : state_(
          std::make_unique<State>(require_weights(std::move(model), "perplexity needs weights, found a null pointer"),
                                  std::move(base), options)) {}
Perplexity::~Perplexity() = default;
Perplexity::Perplexity(Perplexity&&) noexcept = default;
Perplexity& Perplexity::operator=(Perplexity&&) noexcept = default;

void Perplexity::add(std::string_view text, const Progress& progress, const std::stop_token& stop) {
  const EncodingStop stoppable(stop);
  state_->add(state_->encode(text, true), progress, stop);
}

void Perplexity::add(std::span<const TokenId> tokens, const Progress& progress, const std::stop_token& stop) {
  state_->add(tokens, progress, stop);
}

void Perplexity::add_windows(std::string_view document, const PerplexityWindows& windows, const Progress& progress,
                             const std::stop_token& stop) {
  const EncodingStop stoppable(stop);
  state_->add_windows(state_->encode(document, false), windows, progress, stop);
}

void Perplexity::add_windows(std::span<const TokenId> document, const PerplexityWindows& windows,
                             const Progress& progress, const std::stop_token& stop) {
  state_->add_windows(document, windows, progress, stop);
}

PerplexityResult Perplexity::result() const { return state_->result(); }

}  // namespace poise
