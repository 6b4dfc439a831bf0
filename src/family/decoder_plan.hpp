// A DecoderPlan describes a family's computation as plain data. runtime/decoder.cpp executes it.
//
// With x [tokens, hidden] = embedding of the tokens * embedding_scale (+ embedding of their positions), for each layer:
//
//   x += post_norm(o(attention(rope(q_norm(q(n))), rope(k_norm(k(n))), v(n))))   with n = norm(x)
//   x += post_norm(down(activation(gate(m)) * up(m)))                            with m = norm(x)
//
// and at the end logits = soft_cap(output(norm(x)) * logit_scale). An empty or neutral field leaves out its step.
//
// `embedding`, `positions`, `output`, `sinks` and `rope_divisors` name tensors. Other names are modules: a module has
// the tensors NAME.weight and, with a bias, NAME.bias. In layers, names follow the layer's number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "family/config_view.hpp"

namespace poise {

enum class NormKind : std::uint8_t {
  rms,
  rms_plus_one,  // times 1 + weight
  layer,         // mean and variance, with a bias
};

enum class ActivationKind : std::uint8_t {
  silu,
  gelu_tanh,
  gelu,
  relu,
  clamped_swiglu,  // uses gate and up together (kernels/activation.hpp)
};

struct Linear {
  std::string_view module;
  bool bias = false;

  friend bool operator==(const Linear&, const Linear&) = default;
};

struct RopePlan {
  std::vector<float> frequencies;  // one for each element in the first half of the rotated part of a head
  float factor = 1;                // scales the rotated part
  // These frequencies rotate all tokens of a sequence that has more than long_after tokens. If this is empty,
  // `frequencies` rotate them, too.
  std::vector<float> long_frequencies = {};
  std::size_t long_after = 0;

  friend bool operator==(const RopePlan&, const RopePlan&) = default;
};

struct ExpertsPlan {
  std::size_t count = 0;
  std::size_t used = 0;  // how many experts a token uses: those with the best scores
  Linear router;
  bool normalized = true;  // the weights of the used experts sum to one
  // LIST, GATE, UP and DOWN are the fields below. If the experts are separate, expert 7 has the modules LIST.7.GATE,
  // LIST.7.UP and LIST.7.DOWN. If they are stacked, one tensor LIST.GATE holds the gate and up matrices of all experts,
  // with their outputs interleaved, and LIST.DOWN holds all down matrices. Their biases are LIST.GATE_bias and
  // LIST.DOWN_bias.
  ExpertsStored stored = ExpertsStored::separate;
  bool bias = false;
  std::string_view list;
  std::string_view gate;
  std::string_view up;
  std::string_view down;

  friend bool operator==(const ExpertsPlan&, const ExpertsPlan&) = default;
};

struct LayerPlan {
  std::size_t window = 0;               // how many positions a token sees, its own included; 0: all up to its own
  std::optional<std::size_t> rope = 0;  // index in DecoderPlan::ropes; none: no rotation
  bool experts = false;

  friend bool operator==(const LayerPlan&, const LayerPlan&) = default;
};

struct DecoderPlan {
  std::size_t hidden = 0;
  std::size_t inner = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_size = 0;

  std::string_view embedding;
  float embedding_scale = 1;
  std::string_view positions = {};  // learned positions
  std::string_view layer_names;     // "model.layers."; the number follows
  std::string_view norm = {};       // the norm after the last layer
  std::string_view output = {};     // empty: the embedding is the output
  bool output_transposed = false;
  float logit_scale = 1;
  float logit_cap = 0;  // 0: none

  NormKind norm_kind = NormKind::rms;
  float epsilon = 0;

  // The following members describe each layer. Transposed matrices are [in, out].
  bool transposed = false;
  std::string_view attention_norm = {};
  std::string_view attention_post_norm = {};
  std::string_view mlp_norm = {};
  std::string_view mlp_post_norm = {};

  std::vector<Linear> qkv;  // three matrices, or one of all three
  Linear o;
  std::string_view q_norm = {};  // a weight of head_size normalizes each head, a longer one all heads together
  std::string_view k_norm = {};
  float attention_scale = 0;    // 0: 1 / sqrt(head_size)
  float attention_cap = 0;      // 0: none
  std::string_view sinks = {};  // tensor: a score for each query head

  std::vector<Linear> mlp;  // gate and up, one matrix of both, or one without a gate
  bool gated = true;
  Linear down;
  ActivationKind activation = ActivationKind::silu;
  std::optional<ExpertsPlan> experts = {};  // the plan for layers that have experts

  std::vector<RopePlan> ropes;
  // The name of the tensor with divisors of the frequencies, in models that have it. Files of llama.cpp have it in
  // place of rope_scaling.
  std::string_view rope_divisors = {};
  std::vector<LayerPlan> layers;

  friend bool operator==(const DecoderPlan&, const DecoderPlan&) = default;
};

}  // namespace poise
