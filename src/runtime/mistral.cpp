// The Mistral and Llama architecture. For each layer, with x [tokens, hidden]:
//
//   x += o_proj(attention(rope(q_proj(n)), rope(k_proj(n)), v_proj(n)))   with n = rms_norm(x, input_layernorm)
//   x += down_proj(silu(gate_proj(m)) * up_proj(m))                       with m = rms_norm(x, post_attention_layernorm)
//
// and in the end logits = lm_head(rms_norm(x, norm)). Several query heads share one head of keys and values. Position i
// sees the positions j with i - sliding_window < j <= i.
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <poise/error.hpp>

#include "kernels/activation.hpp"
#include "kernels/norm.hpp"
#include "kernels/rotation.hpp"
#include "runtime/attention.hpp"
#include "runtime/kv_cache.hpp"
#include "runtime/matrix.hpp"
#include "runtime/transformer.hpp"

namespace poise {
namespace {

struct Layer {
  std::vector<float> input_norm;
  std::unique_ptr<Matrix> q;
  std::unique_ptr<Matrix> k;
  std::unique_ptr<Matrix> v;
  std::unique_ptr<Matrix> o;
  std::vector<float> post_attention_norm;
  std::unique_ptr<Matrix> gate;
  std::unique_ptr<Matrix> up;
  std::unique_ptr<Matrix> down;
};

const Tensor& require_tensor(const Model& model, const std::string& name) {
  const Tensor* tensor = model.find(name);
  if (tensor == nullptr) throw Error(ErrorKind::internal, fmt::format("tensor {} is missing", name));
  return *tensor;
}

Layer load_layer(const Model& model, std::int64_t index) {
  const auto tensor = [&](std::string_view name) -> const Tensor& { return require_tensor(model, fmt::format("model.layers.{}.{}.weight", index, name)); };
  return {load_vector(tensor("input_layernorm")),  load_matrix(tensor("self_attn.q_proj")), load_matrix(tensor("self_attn.k_proj")),
          load_matrix(tensor("self_attn.v_proj")), load_matrix(tensor("self_attn.o_proj")), load_vector(tensor("post_attention_layernorm")),
          load_matrix(tensor("mlp.gate_proj")),    load_matrix(tensor("mlp.up_proj")),      load_matrix(tensor("mlp.down_proj"))};
}

class Mistral final : public Transformer {
 public:
  Mistral(const Model& model, std::size_t context, std::unique_ptr<Matrix> embedding)
      : Transformer(embedding->rows()),
        hidden_(embedding->columns()),
        head_size_(static_cast<std::size_t>(model.config->head_dim)),
        heads_(static_cast<std::size_t>(model.config->num_attention_heads)),
        kv_heads_(static_cast<std::size_t>(model.config->num_key_value_heads)),
        inner_(static_cast<std::size_t>(model.config->intermediate_size)),
        window_(static_cast<std::size_t>(std::max<std::int64_t>(0, model.config->sliding_window))),
        eps_(model.config->rms_norm_eps),
        embedding_(std::move(embedding)),
        norm_(load_vector(require_tensor(model, "model.norm.weight"))),
        rotation_(head_size_, model.config->rope_theta),
        cache_(static_cast<std::size_t>(model.config->num_hidden_layers), kv_heads_ * head_size_, cached_positions(context)) {
    for (std::int64_t index = 0; index < model.config->num_hidden_layers; ++index) layers_.push_back(load_layer(model, index));
    if (!model.config->tie_word_embeddings) lm_head_ = load_matrix(require_tensor(model, "lm_head.weight"));
  }

  void forward(std::span<const TokenId> tokens, std::size_t position) override {
    const std::size_t count = tokens.size();
    prepare(count, position);
    for (std::size_t t = 0; t < count; ++t) embedding_->decode(static_cast<std::size_t>(tokens[t]), 1, x_.data() + t * hidden_);
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      attention(index, count, position);
      feed_forward(layers_[index], count);
    }
  }

  void logits(std::size_t first, std::size_t count, float* out) override {
    rms_norm(x_.data() + first * hidden_, count, norm_, eps_, normed_.data());
    multiply(lm_head_ ? *lm_head_ : *embedding_, normed_.data(), count, out);
  }

 private:
  // With a sliding window: what the first token of a batch sees, and the batch.
  std::size_t cached_positions(std::size_t context) const { return window_ == 0 ? context : std::min(context, window_ + kMaxBatch - 1); }

  void prepare(std::size_t count, std::size_t position) {
    x_.resize(count * hidden_);
    normed_.resize(count * hidden_);
    projected_.resize(count * hidden_);
    q_.resize(count * heads_ * head_size_);
    k_.resize(count * kv_heads_ * head_size_);
    v_.resize(count * kv_heads_ * head_size_);
    attended_.resize(count * heads_ * head_size_);
    gate_.resize(count * inner_);
    up_.resize(count * inner_);
    rotation_.prepare(position, count, angles_);
    cache_.reserve(position + count);
  }

  void attention(std::size_t index, std::size_t count, std::size_t position) {
    const Layer& layer = layers_[index];
    rms_norm(x_.data(), count, layer.input_norm, eps_, normed_.data());
    multiply(std::array{Product{layer.q.get(), q_.data()}, Product{layer.k.get(), k_.data()}, Product{layer.v.get(), v_.data()}}, normed_.data(), count);
    const std::size_t width = kv_heads_ * head_size_;
    for (std::size_t t = 0; t < count; ++t) {
      rotation_.apply(angles_, t, heads_, q_.data() + t * heads_ * head_size_);
      rotation_.apply(angles_, t, kv_heads_, k_.data() + t * width);
      cache_.put(index, position + t, k_.data() + t * width, v_.data() + t * width);
    }
    attend(cache_, index, {heads_, kv_heads_, head_size_, window_}, position, count, q_.data(), attended_.data());
    multiply(*layer.o, attended_.data(), count, projected_.data());
    add(projected_);
  }

  void feed_forward(const Layer& layer, std::size_t count) {
    rms_norm(x_.data(), count, layer.post_attention_norm, eps_, normed_.data());
    multiply(std::array{Product{layer.gate.get(), gate_.data()}, Product{layer.up.get(), up_.data()}}, normed_.data(), count);
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, gate_.size(), 16384), [&](const tbb::blocked_range<std::size_t>& range) {
      silu_product(gate_.data() + range.begin(), up_.data() + range.begin(), range.size());
    });
    multiply(*layer.down, gate_.data(), count, projected_.data());
    add(projected_);
  }

  void add(const std::vector<float>& y) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] += y[i];
  }

  std::size_t hidden_;
  std::size_t head_size_;
  std::size_t heads_;
  std::size_t kv_heads_;
  std::size_t inner_;
  std::size_t window_;
  float eps_;
  std::unique_ptr<Matrix> embedding_;
  std::vector<Layer> layers_;
  std::vector<float> norm_;
  std::unique_ptr<Matrix> lm_head_;  // null: the embedding
  Rotation rotation_;
  Rotation::Angles angles_;
  KvCache cache_;

  std::vector<float> x_;          // [tokens, hidden]
  std::vector<float> normed_;     // [tokens, hidden]
  std::vector<float> projected_;  // [tokens, hidden]
  std::vector<float> q_;          // [tokens, heads, head_size]
  std::vector<float> k_;          // [tokens, kv_heads, head_size]
  std::vector<float> v_;          // [tokens, kv_heads, head_size]
  std::vector<float> attended_;   // [tokens, heads, head_size]
  std::vector<float> gate_;       // [tokens, inner]
  std::vector<float> up_;         // [tokens, inner]
};

}  // namespace

std::unique_ptr<Transformer> make_mistral(const Model& model, std::size_t context) {
  return std::make_unique<Mistral>(model, context, load_matrix(require_tensor(model, "model.embed_tokens.weight")));
}

}  // namespace poise
