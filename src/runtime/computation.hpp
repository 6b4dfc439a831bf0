// Computation holds what sessions, batches and other users of a model's weights have in common: threads, the number of
// positions that a text may have, and the memory of forward passes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <tbb/task_group.h>

#include <poise/error.hpp>
#include <poise/session.hpp>

#include "runtime/parallel.hpp"
#include "runtime/weights.hpp"

namespace poise {

class Computation {
 public:
  const Weights& weights() const { return *weights_; }

 protected:
  // Throws bad_argument for options that the model or the system does not allow. Requires: weights is not null.
  Computation(std::shared_ptr<const Weights> weights, const SessionOptions& options);
  // Copies the computation; the copy has memory of its own.
  Computation(const Computation& other);
  ~Computation() = default;

  // Returns an empty sequence for up to `positions` tokens.
  Sequence begin_sequence(std::size_t positions) const { return transformer_.make_sequence(positions, cache_); }

  // Throws bad_argument for an unknown id, and for more tokens than fit the context.
  void require_fitting_tokens(std::span<const TokenId> tokens) const;

  SessionThreads threads_;
  std::size_t context_;
  CacheType cache_;
  std::shared_ptr<const Weights> weights_;
  const Transformer& transformer_;
  Workspace memory_;
};

// Throws cancelled. Loops of oneTBB end early in a cancelled computation, and their results must not be used.
[[noreturn]] inline void throw_cancelled() { throw Error(ErrorKind::cancelled, "the computation was stopped"); }

// Throws cancelled if the calling task's group has been cancelled.
inline void throw_if_cancelled() {
  if (tbb::is_current_task_group_canceling()) throw_cancelled();
}

// Throws unsupported: "WHAT is NaN: the weights hold values that are not finite, or overflow". The path may be empty.
[[noreturn]] void refuse_non_finite(const std::string& what, double value, const std::string& path = {});

// Returns log(sum over i of exp(scores[i])). A score minus this is the logarithm of a probability. Requires: there is a
// score.
inline double compute_log_sum_exp(std::span<const float> scores) {
  const double best = static_cast<double>(*std::ranges::max_element(scores));
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - best);
  return best + std::log(sum);
}

}  // namespace poise
