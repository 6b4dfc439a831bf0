// Feed-forward networks: one for all tokens of a layer, or experts; each token uses some of them.
#pragma once

#include <cstddef>
#include <vector>

#include "family/decoder_plan.hpp"
#include "runtime/projection.hpp"
#include "runtime/workspace.hpp"

namespace poise {

struct FeedForward {
  std::vector<Projection> in;  // gate and up, in one matrix or two; or one without a gate
  Projection down;
  ActivationKind activation = ActivationKind::silu;
  bool gated = true;
  Fused fused = Fused::in_turn;

  std::size_t inner() const { return down.matrix->inputs(); }
};

struct Experts {
  Projection router;
  std::vector<FeedForward> all;
  std::size_t used = 0;
  bool normalized = true;
};

// out [tokens, hidden] = down(activation(gate(x)) * up(x)).
void feed_forward(const FeedForward& network, const float* x, std::size_t tokens, Precision precision,
                  NetworkMemory& memory, float* out);

// The same for the experts with the token's best router scores, weighted by these scores. Reads no other expert's
// weights.
void feed_forward(const Experts& experts, const float* x, std::size_t tokens, Workspace& memory, float* out);

}  // namespace poise
