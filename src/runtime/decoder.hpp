// Declares the decoder, which computes the models of all families by their plans.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <poise/model.hpp>

#include "family/decoder_plan.hpp"
#include "runtime/matrix.hpp"
#include "runtime/transformer.hpp"

namespace poise {

// Returns the decoder, or a rank's share of it. Requires: the model's family made `plan`; configuration and tensors
// have been checked.
std::unique_ptr<const Transformer> make_decoder(const Model& model, DecoderPlan plan, const Ranks& ranks);

// Describes y = x times the matrix, plus the bias.
struct Projection {
  std::unique_ptr<Matrix> matrix = {};
  std::vector<float> bias = {};  // empty: none

  std::size_t outputs() const { return matrix->outputs(); }
};

// Receives the output of a projection: [tokens, width].
struct Target {
  float* data = nullptr;
  std::size_t width = 0;
};

// States the order of the outputs of a matrix that makes several parts.
enum class Fused : std::uint8_t {
  in_turn,   // all of the first part, then all of the next
  by_turns,  // the first number of each part, then the second of each
};

// Multiplies x [tokens, inputs] by the projections: each makes a part, or a single one makes all parts. `scratch` is
// working memory.
void project(std::span<const Projection> projections, const float* x, std::size_t tokens, const ProductOptions& options,
             std::span<const Target> parts, std::vector<float>& scratch, Fused fused = Fused::in_turn);
void project(const Projection& projection, const float* x, std::size_t tokens, const ProductOptions& options,
             float* out);

// Holds the feed-forward network of a layer, or an expert, which computes only some tokens.
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
  std::vector<FeedForward> all;  // those of other ranks have no matrices
  std::size_t used = 0;
  bool normalized = true;
};

// Computes out [tokens, hidden] = down(activation(gate(x)) * up(x)); without a gate, down(activation(in(x))).
void run_feed_forward(const FeedForward& network, const float* x, std::size_t tokens, const ProductOptions& options,
                      NetworkMemory& memory, float* out);

// Computes, for each token, the sum of the `used` experts with the best router scores. Each counts with its probability
// in a softmax of the scores: of these experts if `normalized`, else of all experts. Reads only the matrices of the
// chosen experts, and sums up only the experts of this rank.
void run_feed_forward(const Experts& experts, const float* x, std::size_t tokens, Workspace& memory, float* out);

struct Norm {
  NormKind kind = NormKind::rms;
  float epsilon = 0;
  std::vector<float> weight = {};  // empty: no norm
  std::vector<float> bias = {};
  std::size_t whole = 0;  // numbers that are normed together, if some are in other ranks; 0: as many as `weight` has

  explicit operator bool() const { return !weight.empty(); }
  // Applies the norm to rows that are as long as `weight`. `out` may be x. Requires: there is a weight.
  void apply(const float* x, std::size_t rows, float* out) const;
};

struct DecoderLayer {
  LayerPlan plan = {};  // the rest is empty if another rank has the layer
  Norm attention_norm = {};
  std::vector<Projection> qkv = {};
  Norm q_norm = {};
  Norm k_norm = {};
  std::vector<float> sinks = {};
  Projection o = {};
  std::size_t o_skipped = 0;  // inputs of `o` before those of this rank's heads; they are zeros
  Norm attention_post_norm = {};
  Norm mlp_norm = {};
  FeedForward mlp = {};  // has no matrices if the layer has experts
  std::optional<Experts> experts = {};
  Norm mlp_post_norm = {};
};

// Holds the weights of a decoder. Members have the names of those in DecoderPlan.
struct DecoderWeights {
  std::unique_ptr<Matrix> embedding;
  std::unique_ptr<Matrix> positions;  // null: none
  Norm norm;
  std::unique_ptr<Matrix> output;  // null: the output is the embedding, or there is none
  std::size_t vocabulary = 0;      // the number of scores of all ranks together
  std::size_t output_step = 1;     // a rank's share of the scores begins and ends at multiples of it
  std::vector<float> rope_divisors;
  std::vector<DecoderLayer> layers;
};

// Returns a rank's share of the weights; `plan` is that of the whole model. Requires: configuration and tensors have
// been checked.
DecoderWeights load_decoder(const Model& model, const DecoderPlan& plan, const Ranks& ranks);

}  // namespace poise
