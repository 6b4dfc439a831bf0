// Computation: what sessions, batches and other users of a model's weights have in common: threads, the number of
// positions of a text, and the memory that forward passes compute in.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <poise/session.hpp>

#include "runtime/session_threads.hpp"
#include "runtime/weights.hpp"

namespace poise {

class Computation {
 public:
  const Weights& weights() const { return *weights_; }

 protected:
  // Throws bad_argument for options that the model or the system does not allow. Requires: weights.
  Computation(std::shared_ptr<const Weights> weights, const SessionOptions& options);
  // With memory of its own.
  Computation(const Computation& other);
  ~Computation() = default;

  // An empty text for up to `positions` tokens.
  Sequence begin_sequence(std::size_t positions) const { return transformer_.begin(positions, cache_); }

  // Throws bad_argument for an unknown id, and for more tokens than a text has positions.
  void require_fit(std::span<const TokenId> tokens) const;

  SessionThreads threads_;
  std::size_t context_;
  CacheType cache_;
  std::shared_ptr<const Weights> weights_;
  const Transformer& transformer_;
  Workspace memory_;
};

}  // namespace poise
