#include <poise/sampler.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

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
}

TokenId Sampler::sample(std::span<const float> logits) {
  require_numbers(logits);
  if (options_.temperature == 0) return best_of(logits);
  choose_candidates(logits);
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double rest = uniform() * total;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.weight;
    if (rest < 0) return candidate.token;
  }
  return candidates_.front().token;
}

// The best first, cut off after top_k of them and where top_p is reached.
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
    if (sum >= static_cast<double>(options_.top_p) * total) return candidates_.resize(i + 1);
  }
}

double Sampler::uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

}  // namespace poise
