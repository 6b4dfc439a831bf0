// Ranks: transformers that compute one model together, each with a share of its weights.
//
// A rank has whole heads of queries, keys and values, and as many of the inner numbers of each feed-forward network,
// experts among them: rows of q, k, v, gate and up, and the columns of o and down that meet their outputs. What o and
// down give is a part of a sum over all ranks; the first rank's has the bias. Embedding, norms, routers and the output
// are whole in each rank, and so is the text: every rank computes the same tokens.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "family/decoder_plan.hpp"
#include "runtime/matrix.hpp"

namespace poise {

struct Ranks {
  std::size_t rank = 0;
  std::size_t count = 1;  // at least 1
  // Replaces the numbers by the sums over all ranks, which call it in the same order: after `o` and after `down` of
  // each layer. All ranks must get the same bits: routers and samplers choose by them. Null: there is one rank.
  // When a pass ends early on a rank (cancelled, or a number that the cache does not hold), the others wait in here:
  // the caller has to end them, too.
  std::function<void(std::span<float> numbers)> sum = {};

  // This rank's share of `units`.
  IndexRange share(std::size_t units) const { return {units * rank / count, units * (rank + 1) / count}; }
};

// The plan with this rank's heads. Throws unsupported if they do not divide.
DecoderPlan plan_of_rank(DecoderPlan plan, const Ranks& ranks);

}  // namespace poise
