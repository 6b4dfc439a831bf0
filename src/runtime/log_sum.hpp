// The logarithm of the sum of exponentials, which makes logarithms of probabilities of scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace poise {

// Requires: there is a score.
inline double log_sum(std::span<const float> scores) {
  const double best = static_cast<double>(*std::ranges::max_element(scores));
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - best);
  return best + std::log(sum);
}

}  // namespace poise
