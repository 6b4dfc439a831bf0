#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <tbb/parallel_for.h>

#include "kernels/activation.hpp"
#include "runtime/decoder.hpp"
#include "runtime/parallel.hpp"

namespace poise {
namespace {

struct Activation {
  ActivationKind kind;
  void (*alone)(float* x, std::size_t count);  // null if the activation exists only with a gate
  void (*product)(float* gate, const float* up, std::size_t count);
};

constexpr std::array kActivations = std::to_array<Activation>({
    {ActivationKind::silu, apply_silu, gate_with_silu},
    {ActivationKind::gelu_tanh, apply_gelu_tanh, gate_with_gelu_tanh},
    {ActivationKind::gelu, apply_gelu, gate_with_gelu},
    {ActivationKind::relu, apply_relu, gate_with_relu},
    {ActivationKind::clamped_swiglu, nullptr, apply_clamped_swiglu},
});

const Activation& get_activation(ActivationKind kind) {
  return *std::ranges::find(kActivations, kind, &Activation::kind);
}

// Names an expert, a token that chose it, and the weight of the expert's output.
struct Choice {
  std::size_t expert;
  std::size_t token;
  float weight;
};

// Appends the `used` experts with a token's best scores to `choices`. NaN counts as the worst score.
void choose_experts(const Experts& experts, float* scores, std::size_t token, std::vector<std::size_t>& order,
                    std::vector<Choice>& choices) {
  const std::size_t count = experts.all.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isnan(scores[i])) scores[i] = -std::numeric_limits<float>::infinity();
  }
  order.resize(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_better_expert = [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(experts.used);
  std::partial_sort(order.begin(), end, order.end(), is_better_expert);
  const auto compute_exponential = [&](std::size_t i) {
    return std::exp(static_cast<double>(scores[i]) - static_cast<double>(scores[order.front()]));
  };
  double sum = 0;
  for (auto i = order.begin(); i != (experts.normalized ? end : order.end()); ++i) sum += compute_exponential(*i);
  for (auto i = order.begin(); i != end; ++i)
    choices.push_back({*i, token, static_cast<float>(compute_exponential(*i) / sum)});
}

// Computes an expert for the tokens that chose it, and adds the results to `out`.
void run_expert(const FeedForward& expert, std::span<const Choice> choices, const float* x, std::size_t tokens,
                Workspace& memory, float* out) {
  const std::size_t hidden = expert.down.outputs();
  // Some products sum a single token in another order than several. So if only one of several tokens chose the expert,
  // the expert computes this token twice, except with an observer, which must see each token once.
  const std::size_t least = tokens > 1 && memory.observer == nullptr ? 2 : 1;
  const std::size_t count = std::max(least, choices.size());
  memory.gathered.resize(count * hidden);
  memory.expert_out.resize(count * hidden);
  for (std::size_t i = 0; i < count; ++i)
    std::copy_n(x + choices[std::min(i, choices.size() - 1)].token * hidden, hidden,
                memory.gathered.data() + i * hidden);
  run_feed_forward(expert, memory.gathered.data(), count, memory.product_options(), memory.network,
                   memory.expert_out.data());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    float* const to = out + choices[i].token * hidden;
    for (std::size_t j = 0; j < hidden; ++j) to[j] += choices[i].weight * memory.expert_out[i * hidden + j];
  }
}

// Computes the experts of one token in parallel, because each is too little work for all threads.
void run_experts_of_token(const Experts& experts, std::span<const Choice> choices, const float* x, Workspace& memory,
                          float* out) {
  const std::size_t hidden = experts.router.matrix->inputs();
  memory.experts.resize(std::max(memory.experts.size(), choices.size()));
  memory.expert_out.resize(choices.size() * hidden);
  tbb::parallel_for(std::size_t{0}, choices.size(), [&](std::size_t i) {
    run_feed_forward(experts.all[choices[i].expert], x, 1, memory.product_options(), memory.experts[i],
                     memory.expert_out.data() + i * hidden);
  });
  for (std::size_t i = 0; i < choices.size(); ++i) {
    for (std::size_t j = 0; j < hidden; ++j) out[j] += choices[i].weight * memory.expert_out[i * hidden + j];
  }
}

// Computes the network with multiply_gated(), a block of inner numbers at a time. Returns false, without computing, if
// that is not possible.
bool run_in_blocks(const FeedForward& network, const Activation& activation, const float* x, std::size_t tokens,
                   const ProductOptions& options, float* out) {
  const auto has_bias = [](const Projection& projection) { return !projection.bias.empty(); };
  const bool is_one_matrix = network.in.size() == 1;
  if (!network.gated || (is_one_matrix && network.fused == Fused::by_turns) ||
      std::ranges::any_of(network.in, has_bias) || has_bias(network.down))
    return false;
  return multiply_gated({.gate = {network.in.front().matrix.get(), 0},
                         .up = {network.in.back().matrix.get(), is_one_matrix ? network.inner() : 0},
                         .combine = activation.product,
                         .down = network.down.matrix.get()},
                        x, tokens, out, options);
}

void add_bias(const std::vector<float>& bias, std::size_t tokens, float* y) {
  if (bias.empty()) return;
  for (std::size_t t = 0; t < tokens; ++t, y += bias.size()) {
    for (std::size_t i = 0; i < bias.size(); ++i) y[i] += bias[i];
  }
}

// Copies the output of a fused matrix for token t to the parts.
void copy_to_parts(const float* from, std::span<const Target> parts, std::size_t t, Fused fused) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    float* const to = parts[p].data + t * parts[p].width;
    if (fused == Fused::in_turn) {
      std::copy_n(from, parts[p].width, to);
      from += parts[p].width;
    } else {
      for (std::size_t i = 0; i < parts[p].width; ++i) to[i] = from[i * parts.size() + p];
    }
  }
}

}  // namespace

void run_feed_forward(const FeedForward& network, const float* x, std::size_t tokens, const ProductOptions& options,
                      NetworkMemory& memory, float* out) {
  const Activation& activation = get_activation(network.activation);
  if (run_in_blocks(network, activation, x, tokens, options, out)) return;
  const std::size_t inner = network.inner();
  memory.gate.resize(tokens * inner);
  if (network.gated) memory.up.resize(tokens * inner);
  const std::array parts = {Target{memory.gate.data(), inner}, Target{memory.up.data(), inner}};
  project(network.in, x, tokens, options, std::span(parts).first(network.gated ? 2 : 1), memory.fused, network.fused);
  run_in_parallel(memory.gate.size(), kLeastNumbers, [&](std::size_t first, std::size_t last) {
    float* const gate = memory.gate.data() + first;
    if (network.gated) return activation.product(gate, memory.up.data() + first, last - first);
    activation.alone(gate, last - first);
  });
  project(network.down, memory.gate.data(), tokens, options, out);
}

void run_feed_forward(const Experts& experts, const float* x, std::size_t tokens, Workspace& memory, float* out) {
  const std::size_t count = experts.all.size();
  memory.scores.resize(tokens * count);
  project(experts.router, x, tokens, memory.product_options(), memory.scores.data());
  std::vector<Choice> choices;
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < tokens; ++t) choose_experts(experts, memory.scores.data() + t * count, t, order, choices);
  std::erase_if(choices, [&](const Choice& choice) { return !experts.all[choice.expert].down.matrix; });
  std::ranges::stable_sort(choices, {}, &Choice::expert);
  std::fill_n(out, tokens * experts.router.matrix->inputs(), 0.0F);
  if (tokens == 1) return run_experts_of_token(experts, choices, x, memory, out);
  for (auto first = choices.begin(); first != choices.end();) {
    const auto last =
        std::find_if(first, choices.end(), [&](const Choice& choice) { return choice.expert != first->expert; });
    run_expert(experts.all[first->expert], {first, last}, x, tokens, memory, out);
    first = last;
  }
}

void project(std::span<const Projection> projections, const float* x, std::size_t tokens, const ProductOptions& options,
             std::span<const Target> parts, std::vector<float>& scratch, Fused fused) {
  if (projections.size() == parts.size()) {
    std::vector<Product> products;
    for (std::size_t i = 0; i < parts.size(); ++i) products.push_back({projections[i].matrix.get(), parts[i].data});
    multiply(products, x, tokens, options);
    for (std::size_t i = 0; i < parts.size(); ++i) add_bias(projections[i].bias, tokens, parts[i].data);
    return;
  }
  const Projection& all = projections.front();
  scratch.resize(tokens * all.outputs());
  project(all, x, tokens, options, scratch.data());
  for (std::size_t t = 0; t < tokens; ++t) copy_to_parts(scratch.data() + t * all.outputs(), parts, t, fused);
}

void project(const Projection& projection, const float* x, std::size_t tokens, const ProductOptions& options,
             float* out) {
  multiply(*projection.matrix, x, tokens, out, options);
  add_bias(projection.bias, tokens, out);
}

}  // namespace poise
