// Small Mistral models with random weights, and what they compute: a second forward pass, written to be read.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/model.hpp>

namespace poise {

using NamedNumbers = std::map<std::string, std::vector<float>>;

inline Config small_config() {
  Config config;
  config.hidden_size = 24;
  config.intermediate_size = 36;
  config.max_position_embeddings = 300;
  config.num_attention_heads = 6;
  config.num_hidden_layers = 3;
  config.num_key_value_heads = 2;
  config.head_dim = 10;  // not hidden_size / num_attention_heads, and not a multiple of a vector
  config.vocab_size = 37;
  config.rope_theta = 1000.0F;
  return config;
}

// For texts that take several computations.
inline Config long_config() {
  Config config = small_config();
  config.max_position_embeddings = 1200;
  return config;
}

inline std::vector<std::pair<std::string, Shape>> weight_shapes(const Config& c) {
  const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const std::uint64_t hidden = size(c.hidden_size);
  const std::uint64_t queries = size(c.num_attention_heads * c.head_dim);
  const std::uint64_t keys = size(c.num_key_value_heads * c.head_dim);
  const std::uint64_t inner = size(c.intermediate_size);
  std::vector<std::pair<std::string, Shape>> shapes = {{"model.embed_tokens.weight", {size(c.vocab_size), hidden}},
                                                       {"model.norm.weight", {hidden}}};
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    shapes.insert(shapes.end(), {{layer + "input_layernorm.weight", {hidden}},
                                 {layer + "self_attn.q_proj.weight", {queries, hidden}},
                                 {layer + "self_attn.k_proj.weight", {keys, hidden}},
                                 {layer + "self_attn.v_proj.weight", {keys, hidden}},
                                 {layer + "self_attn.o_proj.weight", {hidden, queries}},
                                 {layer + "post_attention_layernorm.weight", {hidden}},
                                 {layer + "mlp.gate_proj.weight", {inner, hidden}},
                                 {layer + "mlp.up_proj.weight", {inner, hidden}},
                                 {layer + "mlp.down_proj.weight", {hidden, inner}}});
  }
  if (!c.tie_word_embeddings) shapes.push_back({"lm_head.weight", {size(c.vocab_size), hidden}});
  return shapes;
}

// Numbers from -1 to 1 times `scale`, the same everywhere.
inline std::vector<float> random_floats(std::size_t count, std::mt19937& random, float scale) {
  std::vector<float> values(count);
  for (float& value : values) value = scale * (static_cast<float>(random() >> 8) / 8388608.0F - 1.0F);
  return values;
}

inline NamedNumbers random_weights(const Config& config, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  NamedNumbers weights;
  for (const auto& [name, shape] : weight_shapes(config))
    weights[name] = random_floats(*element_count(shape), random, shape.size() == 1 ? 1.5F : 0.5F);
  return weights;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A float32 model with these weights. `make` may give tensors of other kinds.
template <typename MakeTensor>
Model make_model(const Config& config, const NamedNumbers& weights, MakeTensor&& make) {
  Model model;
  model.card.model_type = "mistral";
  model.config = config;
  for (const auto& [name, shape] : weight_shapes(config)) model.add(make(name, shape, weights.at(name)));
  return model;
}

inline Tensor float_tensor(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  return make_dense(name, shape, DType::f32, make_memory_blob(bytes_of(values), name));
}

inline Model make_model(const Config& config, const NamedNumbers& weights) {
  return make_model(config, weights, float_tensor);
}

// The forward pass in float64, position by position as the papers have it, without cache, batches or threads: the
// logits after each token, and hidden states.
class Reference {
 public:
  using Vector = std::vector<double>;

  Reference(const Config& config, const NamedNumbers& weights) : c_(config), weights_(weights) {}

  std::vector<Vector> logits(const std::vector<std::int32_t>& tokens) const {
    const std::vector<Vector> last = hidden_states(tokens).back();
    std::vector<Vector> result;
    for (const Vector& hidden : last)
      result.push_back(times(c_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", hidden));
    return result;
  }

  // Of each layer those of all tokens: the embedding, the output of each block, but that of the last one normed.
  std::vector<std::vector<Vector>> hidden_states(const std::vector<std::int32_t>& tokens) const {
    std::vector<Vector> x;
    for (const std::int32_t token : tokens)
      x.push_back(row("model.embed_tokens.weight", static_cast<std::size_t>(token)));
    std::vector<std::vector<Vector>> result = {x};
    for (std::int64_t i = 0; i < c_.num_hidden_layers; ++i) {
      layer(fmt::format("model.layers.{}.", i), x);
      result.push_back(x);
    }
    for (Vector& hidden : result.back()) hidden = norm(hidden, "model.norm.weight");
    return result;
  }

 private:
  void layer(const std::string& name, std::vector<Vector>& x) const {
    const auto head_dim = static_cast<std::size_t>(c_.head_dim);
    const auto heads = static_cast<std::size_t>(c_.num_attention_heads);
    const std::size_t group = heads / static_cast<std::size_t>(c_.num_key_value_heads);
    std::vector<Vector> q, k, v;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Vector n = norm(x[i], name + "input_layernorm.weight");
      q.push_back(rotated(times(name + "self_attn.q_proj.weight", n), i));
      k.push_back(rotated(times(name + "self_attn.k_proj.weight", n), i));
      v.push_back(times(name + "self_attn.v_proj.weight", n));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      Vector attended;
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t kv = head / group * head_dim;
        std::vector<double> weight(i + 1);
        double sum = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          if (c_.sliding_window > 0 && j + static_cast<std::size_t>(c_.sliding_window) <= i) continue;
          double score = 0;
          for (std::size_t d = 0; d < head_dim; ++d) score += q[i][head * head_dim + d] * k[j][kv + d];
          weight[j] = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
          sum += weight[j];
        }
        for (std::size_t d = 0; d < head_dim; ++d) {
          double value = 0;
          for (std::size_t j = 0; j <= i; ++j) value += weight[j] / sum * v[j][kv + d];
          attended.push_back(value);
        }
      }
      add(x[i], times(name + "self_attn.o_proj.weight", attended));
      const Vector n = norm(x[i], name + "post_attention_layernorm.weight");
      Vector gate = times(name + "mlp.gate_proj.weight", n);
      const Vector up = times(name + "mlp.up_proj.weight", n);
      for (std::size_t d = 0; d < gate.size(); ++d) gate[d] = gate[d] / (1 + std::exp(-gate[d])) * up[d];
      add(x[i], times(name + "mlp.down_proj.weight", gate));
    }
  }

  Vector row(const std::string& name, std::size_t index) const {
    const auto width = static_cast<std::size_t>(c_.hidden_size);
    const auto begin = weights_.at(name).begin() + static_cast<std::ptrdiff_t>(index * width);
    return Vector(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  Vector times(const std::string& name, const Vector& x) const {
    const std::vector<float>& weight = weights_.at(name);
    Vector y(weight.size() / x.size());
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t i = 0; i < x.size(); ++i) y[r] += static_cast<double>(weight[r * x.size() + i]) * x[i];
    }
    return y;
  }
  Vector norm(const Vector& x, const std::string& name) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    Vector y = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] *= static_cast<double>(weights_.at(name)[i]) /
              std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(c_.rms_norm_eps));
    }
    return y;
  }
  Vector rotated(Vector x, std::size_t position) const {
    const auto head_dim = static_cast<std::size_t>(c_.head_dim);
    for (std::size_t begin = 0; begin < x.size(); begin += head_dim) {
      for (std::size_t i = 0; i < head_dim / 2; ++i) {
        const double exponent = 2 * static_cast<double>(i) / static_cast<double>(head_dim);
        const double angle = static_cast<double>(position) / std::pow(static_cast<double>(c_.rope_theta), exponent);
        double& a = x[begin + i];
        double& b = x[begin + i + head_dim / 2];
        const double rotated = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = rotated;
      }
    }
    return x;
  }
  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  Config c_;
  const NamedNumbers& weights_;
};

}  // namespace poise
