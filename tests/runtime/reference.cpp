#include "runtime/reference.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace poise {
namespace {

void add(std::vector<double>& x, const std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

}  // namespace

std::vector<Reference::Vector> Reference::logits(const std::vector<std::int32_t>& tokens) const {
  const std::vector<Vector> last = hidden_states(tokens).back();
  std::vector<Vector> result;
  for (const Vector& hidden : last)
    result.push_back(times(c_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", hidden));
  return result;
}

std::vector<std::vector<Reference::Vector>> Reference::hidden_states(const std::vector<std::int32_t>& tokens) const {
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

void Reference::layer(const std::string& name, std::vector<Vector>& x) const {
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
    Vector attended(heads * head_dim);
    const std::size_t first =
        c_.sliding_window > 0 ? i + 1 - std::min(i + 1, static_cast<std::size_t>(c_.sliding_window)) : 0;
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t kv = head / group * head_dim;
      std::vector<double> weight(i + 1);
      double sum = 0;
      for (std::size_t j = first; j <= i; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < head_dim; ++d) score += q[i][head * head_dim + d] * k[j][kv + d];
        weight[j] = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
        sum += weight[j];
      }
      for (std::size_t j = first; j <= i; ++j) {
        const double share = weight[j] / sum;
        for (std::size_t d = 0; d < head_dim; ++d) attended[head * head_dim + d] += share * v[j][kv + d];
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

Reference::Vector Reference::row(const std::string& name, std::size_t index) const {
  const auto width = static_cast<std::size_t>(c_.hidden_size);
  const auto begin = weights_.at(name).begin() + static_cast<std::ptrdiff_t>(index * width);
  return Vector(begin, begin + static_cast<std::ptrdiff_t>(width));
}

Reference::Vector Reference::times(const std::string& name, const Vector& x) const {
  const std::vector<float>& weight = weights_.at(name);
  Vector y(weight.size() / x.size());
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (std::size_t i = 0; i < x.size(); ++i) y[r] += static_cast<double>(weight[r * x.size() + i]) * x[i];
  }
  return y;
}

Reference::Vector Reference::norm(const Vector& x, const std::string& name) const {
  double squares = 0;
  for (const double value : x) squares += value * value;
  Vector y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] *= static_cast<double>(weights_.at(name)[i]) /
            std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(c_.rms_norm_eps));
  }
  return y;
}

Reference::Vector Reference::rotated(Vector x, std::size_t position) const {
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

}  // namespace poise
