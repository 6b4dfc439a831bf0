#include <poise/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "runtime/computation.hpp"

namespace poise {
namespace {

TokenId find_best_token(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void require_numbers(std::span<const float> logits) {
  // The loop has no branch for each score: infinity is not less than itself, and NaN compares as false.
  const auto is_number = [](float logit) { return logit < std::numeric_limits<float>::infinity(); };
  std::size_t numbers = 0;
  for (const float logit : logits) numbers += is_number(logit) ? 1 : 0;
  if (numbers == logits.size()) return;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const float logit = logits[token];
    if (is_number(logit)) continue;
    throw Error(ErrorKind::unsupported,
                fmt::format("the score of token {} is {}: the weights hold values that are not finite, or overflow",
                            token, logit));
  }
}

template <typename... Values>
void require(bool holds, fmt::format_string<const Values&...> problem, const Values&... values) {
  if (!holds) throw Error(ErrorKind::bad_argument, fmt::format(problem, values...));
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  require(std::isfinite(options.temperature) && options.temperature >= 0, "temperature is {}, expected 0 or more",
          options.temperature);
  require(options.top_p > 0 && options.top_p <= 1, "top-p is {}, expected more than 0, at most 1", options.top_p);
  require(options.top_k >= 0, "top-k is {}, expected 0 or more", options.top_k);
  require(options.min_p >= 0 && options.min_p <= 1, "min-p is {}, expected 0 to 1", options.min_p);
  require(std::isfinite(options.repetition_penalty) && options.repetition_penalty > 0,
          "repetition-penalty is {}, expected more than 0", options.repetition_penalty);
  require(std::isfinite(options.presence_penalty), "presence-penalty is {}, expected a finite number",
          options.presence_penalty);
  require(std::isfinite(options.frequency_penalty), "frequency-penalty is {}, expected a finite number",
          options.frequency_penalty);
  for (const auto& [token, bias] : options.logit_bias) {
    require(token >= 0, "logit-bias: {} is not the id of a token", token);
    require(!std::isnan(bias) && bias != std::numeric_limits<float>::infinity(),
            "logit-bias: {} is not a number to add to a score", bias);
  }
}

void Sampler::see(std::span<const TokenId> tokens) {
  if (options_.repetition_penalty == 1) return;
  for (const TokenId token : tokens) {
    const auto id = static_cast<std::size_t>(token);
    if (id >= seen_.size()) seen_.resize(id + 1);
    seen_[id] = true;
  }
}

// Returns the scores after biases and penalties. Throws bad_argument for a bias of a token that has no score.
std::span<const float> Sampler::adjust_scores(std::span<const float> logits) {
  const bool has_penalty = options_.presence_penalty != 0 || options_.frequency_penalty != 0;
  if (options_.logit_bias.empty() && options_.repetition_penalty == 1 && !has_penalty) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : options_.logit_bias) {
    if (static_cast<std::size_t>(token) >= logits.size()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("logit-bias: token {} is out of range: there are scores of {}", token, logits.size()));
    }
    adjusted_[static_cast<std::size_t>(token)] += bias;
  }
  for (std::size_t id = 0; id < std::min(seen_.size(), adjusted_.size()); ++id) {
    if (!seen_[id]) continue;
    float& score = adjusted_[id];
    score = score > 0 ? score / options_.repetition_penalty : score * options_.repetition_penalty;
  }
  for (std::size_t id = 0; has_penalty && id < std::min(generated_.size(), adjusted_.size()); ++id) {
    if (generated_[id] == 0) continue;
    adjusted_[id] -= options_.presence_penalty + options_.frequency_penalty * static_cast<float>(generated_[id]);
  }
  return adjusted_;
}

TokenId Sampler::sample(std::span<const float> logits) {
  require_numbers(logits);
  const TokenId token = choose(adjust_scores(logits));
  count_token(token);
  return token;
}

TokenId Sampler::sample(std::span<const float> logits, const Guess& guess) {
  if (guess.drawn_from.empty() || options_.temperature == 0) return sample(logits);
  require_numbers(logits);
  const TokenId token = choose(adjust_scores(logits), guess);
  count_token(token);
  return token;
}

Guess Sampler::guess(std::span<const float> logits) {
  require_numbers(logits);
  const std::span<const float> scores = adjust_scores(logits);
  if (options_.temperature == 0) return {find_best_token(scores)};
  choose_candidates(scores);
  const double total = compute_total_weight();
  Guess guess = {draw(total)};
  for (const Candidate& candidate : candidates_)
    guess.drawn_from.emplace_back(candidate.token, candidate.weight / total);
  return guess;
}

Sampler Sampler::branch() {
  Sampler other = *this;
  other.random_.seed(random_());
  return other;
}

// Counts a generated token, for the penalties.
void Sampler::count_token(TokenId token) {
  see(std::span(&token, 1));
  if (options_.presence_penalty == 0 && options_.frequency_penalty == 0) return;
  const auto id = static_cast<std::size_t>(token);
  if (id >= generated_.size()) generated_.resize(id + 1);
  ++generated_[id];
}

TokenId Sampler::choose(std::span<const float> logits) {
  if (options_.temperature == 0) return find_best_token(logits);
  choose_candidates(logits);
  return draw(compute_total_weight());
}

// Accepts the guess with probability min(1, p / q), where p is its probability here, and q the one with which the draft
// drew it. Otherwise draws from the excess of p over q.
TokenId Sampler::choose(std::span<const float> logits, const Guess& guess) {
  choose_candidates(logits);
  const double total = compute_total_weight();
  std::vector<double> drawn(logits.size());
  for (const auto& [token, probability] : guess.drawn_from) {
    if (static_cast<std::size_t>(token) < drawn.size()) drawn[static_cast<std::size_t>(token)] = probability;
  }
  const auto same = std::ranges::find(candidates_, guess.token, &Candidate::token);
  const double wanted = same == candidates_.end() ? 0 : same->weight / total;
  const auto id = static_cast<std::size_t>(guess.token);
  if (id < drawn.size() && draw_uniform() * drawn[id] < wanted) return guess.token;
  for (Candidate& candidate : candidates_)
    candidate.weight = std::max(0.0, candidate.weight / total - drawn[static_cast<std::size_t>(candidate.token)]);
  const double rest = compute_total_weight();
  // If no weight is left, only rounding has rejected the guess.
  return rest > 0 ? draw(rest) : guess.token;
}

double Sampler::sum_weights(std::span<const Candidate> candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& candidate) { return sum + candidate.weight; });
}

double Sampler::compute_total_weight() const { return sum_weights(candidates_); }

TokenId Sampler::draw(double total) {
  const double place = draw_uniform() * total;
  double sum = 0;
  for (const Candidate& candidate : candidates_) {
    sum += candidate.weight;
    if (place < sum) return candidate.token;
  }
  // Rounding has made the product equal to the total.
  const auto last = std::find_if(candidates_.rbegin(), candidates_.rend(),
                                 [](const Candidate& candidate) { return candidate.weight > 0; });
  return last == candidates_.rend() ? candidates_.front().token : last->token;
}

// Chooses the tokens that top_k, top_p and min_p keep, in the order of ids. Does not sort, because a vocabulary may
// have hundreds of thousands of tokens.
void Sampler::choose_candidates(std::span<const float> logits) {
  const TokenId best_token = find_best_token(logits);
  const float best = logits[static_cast<std::size_t>(best_token)];
  if (std::isinf(best)) {  // all scores are -infinity
    candidates_.assign({{best_token, best, 1}});
    return;
  }
  candidates_.resize(logits.size());
  for (std::size_t token = 0; token < logits.size(); ++token)
    candidates_[token] = {static_cast<TokenId>(token), logits[token], 0};
  if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < candidates_.size()) {
    ranked_ = candidates_;
    const auto last = ranked_.begin() + (options_.top_k - 1);
    std::nth_element(ranked_.begin(), last, ranked_.end(), is_better);
    remove_worse_than(*last);
  }
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((static_cast<double>(candidate.logit) - static_cast<double>(best)) /
                                static_cast<double>(options_.temperature));
  }
  if (options_.top_p < 1) keep_nucleus();
  if (options_.min_p == 0) return;
  // The best token has weight 1.
  std::erase_if(candidates_, [least = static_cast<double>(options_.min_p)](const Candidate& candidate) {
    return candidate.weight < least;
  });
}

// Keeps the smallest number of best tokens that together have top_p of the weight.
void Sampler::keep_nucleus() {
  const double total = compute_total_weight();
  double wanted = static_cast<double>(options_.top_p) * total;
  // The tokens outside the nucleus may together weigh total - wanted, and `least` is an even share of this. So all
  // tokens lighter than `least` together weigh less, and none of them is in the nucleus.
  const double least = (total - wanted) / static_cast<double>(candidates_.size());
  ranked_.clear();
  std::ranges::copy_if(candidates_, std::back_inserter(ranked_),
                       [&](const Candidate& candidate) { return candidate.weight >= least; });
  // The last token of the nucleus is in [begin, end). `wanted` is the weight that the nucleus needs besides the better
  // tokens before `begin`. Each round halves the range, which takes linear time in all.
  auto begin = ranked_.begin();
  for (auto end = ranked_.end(); end - begin > 1;) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, is_better);
    const double better = sum_weights({begin, middle});
    if (better >= wanted) {
      end = middle;
    } else {
      wanted -= better;
      begin = middle;
    }
  }
  remove_worse_than(*begin);
}

void Sampler::remove_worse_than(const Candidate& last) {
  std::erase_if(candidates_, [last](const Candidate& candidate) { return is_better(last, candidate); });
}

bool Sampler::is_better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

double log_probability(std::span<const float> logits, TokenId token) {
  return static_cast<double>(logits[static_cast<std::size_t>(token)]) - compute_log_sum_exp(logits);
}

std::vector<TokenLogProbability> top_log_probabilities(std::span<const float> logits, std::size_t count) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](TokenId a, TokenId b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left > right || (left == right && a < b);
  });
  ids.erase(end, ids.end());
  std::vector<TokenLogProbability> result;
  if (ids.empty()) return result;
  const double of_best = log_probability(logits, ids.front());
  const double best = static_cast<double>(logits[static_cast<std::size_t>(ids.front())]);
  for (const TokenId id : ids)
    result.push_back({id, static_cast<double>(logits[static_cast<std::size_t>(id)]) - best + of_best});
  return result;
}

double Sampler::draw_uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

}  // namespace poise
