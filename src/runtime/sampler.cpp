#include <poise/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "runtime/log_sum.hpp"

namespace poise {
namespace {

TokenId best_of(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void require_numbers(std::span<const float> logits) {
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const float logit = logits[token];
    if (!std::isnan(logit) && !(std::isinf(logit) && logit > 0)) continue;
    throw Error(ErrorKind::unsupported,
                fmt::format("the score of token {} is {}: the weights hold values that are not finite, or overflow",
                            token, logit));
  }
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    throw Error(ErrorKind::bad_argument, fmt::format("temperature is {}, expected 0 or more", options.temperature));
  }
  if (!(options.top_p > 0 && options.top_p <= 1))
    throw Error(ErrorKind::bad_argument, fmt::format("top-p is {}, expected more than 0, at most 1", options.top_p));
  if (options.top_k < 0)
    throw Error(ErrorKind::bad_argument, fmt::format("top-k is {}, expected 0 or more", options.top_k));
  if (!(options.min_p >= 0 && options.min_p <= 1))
    throw Error(ErrorKind::bad_argument, fmt::format("min-p is {}, expected 0 to 1", options.min_p));
  if (!std::isfinite(options.repetition_penalty) || options.repetition_penalty <= 0) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("repetition-penalty is {}, expected more than 0", options.repetition_penalty));
  }
  if (!std::isfinite(options.presence_penalty) || !std::isfinite(options.frequency_penalty))
    throw Error(ErrorKind::bad_argument, "presence-penalty and frequency-penalty have to be numbers");
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0) throw Error(ErrorKind::bad_argument, fmt::format("logit-bias: {} is not the id of a token", token));
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      throw Error(ErrorKind::bad_argument, fmt::format("logit-bias: {} is not a number to add to a score", bias));
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

// The scores after biases and penalties.
std::span<const float> Sampler::adjusted(std::span<const float> logits) {
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
  const TokenId token = choose(adjusted(logits));
  count(token);
  return token;
}

TokenId Sampler::sample(std::span<const float> logits, const Guess& guess) {
  if (guess.drawn_from.empty() || options_.temperature == 0) return sample(logits);
  require_numbers(logits);
  const TokenId token = choose(adjusted(logits), guess);
  count(token);
  return token;
}

Guess Sampler::guess(std::span<const float> logits) {
  require_numbers(logits);
  const std::span<const float> scores = adjusted(logits);
  if (options_.temperature == 0) return {best_of(scores)};
  choose_candidates(scores);
  const double total = total_weight();
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

// As a token of the text.
void Sampler::count(TokenId token) {
  see(std::span(&token, 1));
  if (options_.presence_penalty == 0 && options_.frequency_penalty == 0) return;
  const auto id = static_cast<std::size_t>(token);
  if (id >= generated_.size()) generated_.resize(id + 1);
  ++generated_[id];
}

TokenId Sampler::choose(std::span<const float> logits) {
  if (options_.temperature == 0) return best_of(logits);
  choose_candidates(logits);
  return draw(total_weight());
}

// Takes the guess with the probability p / q, if it has p here and q where it was drawn. Otherwise draws from what p is
// larger than q by.
TokenId Sampler::choose(std::span<const float> logits, const Guess& guess) {
  choose_candidates(logits);
  const double total = total_weight();
  std::vector<double> drawn(logits.size());
  for (const auto& [token, probability] : guess.drawn_from) {
    if (static_cast<std::size_t>(token) < drawn.size()) drawn[static_cast<std::size_t>(token)] = probability;
  }
  const auto same = std::ranges::find(candidates_, guess.token, &Candidate::token);
  const double wanted = same == candidates_.end() ? 0 : same->weight / total;
  const auto id = static_cast<std::size_t>(guess.token);
  if (id < drawn.size() && uniform() * drawn[id] < wanted) return guess.token;
  for (Candidate& candidate : candidates_)
    candidate.weight = std::max(0.0, candidate.weight / total - drawn[static_cast<std::size_t>(candidate.token)]);
  const double rest = total_weight();
  // Nothing is left where rounding alone rejected the guess.
  return rest > 0 ? draw(rest) : guess.token;
}

double Sampler::total_weight() const {
  return std::accumulate(candidates_.begin(), candidates_.end(), 0.0,
                         [](double sum, const Candidate& candidate) { return sum + candidate.weight; });
}

TokenId Sampler::draw(double total) {
  double rest = uniform() * total;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.weight;
    if (rest < 0) return candidate.token;
  }
  return candidates_.front().token;
}

// The best first, limited by top_k, top_p and min_p.
void Sampler::choose_candidates(std::span<const float> logits) {
  const double best = static_cast<double>(logits[static_cast<std::size_t>(best_of(logits))]);
  candidates_.clear();
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double weight =
        std::exp((static_cast<double>(logits[token]) - best) / static_cast<double>(options_.temperature));
    candidates_.push_back({static_cast<TokenId>(token), logits[token], weight});
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  };
  if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + options_.top_k, candidates_.end(), better);
    candidates_.resize(static_cast<std::size_t>(options_.top_k));
  }
  std::sort(candidates_.begin(), candidates_.end(), better);
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double sum = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    sum += candidates_[i].weight;
    if (sum < static_cast<double>(options_.top_p) * total) continue;
    candidates_.resize(i + 1);
    break;
  }
  if (options_.min_p == 0) return;
  // The best has weight 1.
  const auto is_less = [&](const Candidate& candidate) {
    return candidate.weight < static_cast<double>(options_.min_p);
  };
  candidates_.erase(std::find_if(candidates_.begin() + 1, candidates_.end(), is_less), candidates_.end());
}

double log_probability(std::span<const float> logits, TokenId token) {
  return static_cast<double>(logits[static_cast<std::size_t>(token)]) - log_sum(logits);
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

double Sampler::uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

}  // namespace poise
