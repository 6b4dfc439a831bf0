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

#include "kernels/activation.hpp"
#include "kernels/norm.hpp"
#include "runtime/attention.hpp"
#include "runtime/matrix.hpp"
#include "runtime/recipes.hpp"

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

Layer load_layer(const Model& model, std::int64_t index) {
  const auto tensor = [&](std::string_view name) -> const Tensor& { return require_tensor(model, fmt::format("model.layers.{}.{}.weight", index, name)); };
  return {load_vector(tensor("input_layernorm")),  load_matrix(tensor("self_attn.q_proj")), load_matrix(tensor("self_attn.k_proj")),
          load_matrix(tensor("self_attn.v_proj")), load_matrix(tensor("self_attn.o_proj")), load_vector(tensor("post_attention_layernorm")),
          load_matrix(tensor("mlp.gate_proj")),    load_matrix(tensor("mlp.up_proj")),      load_matrix(tensor("mlp.down_proj"))};
}

class Mistral final : public Transformer {
 public:
  Mistral(const Model& model, std::unique_ptr<Matrix> embedding)
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
        rotation_(head_size_, model.config->rope_theta) {
    for (std::int64_t index = 0; index < model.config->num_hidden_layers; ++index) layers_.push_back(load_layer(model, index));
    if (!model.config->tie_word_embeddings) lm_head_ = load_matrix(require_tensor(model, "lm_head.weight"));
  }

  Sequence begin(std::size_t context) const override {
    // With a sliding window: what the first token of a batch sees, and the batch.
    const std::size_t positions = window_ == 0 ? context : std::min(context, window_ + kMaxBatch - 1);
    return Sequence(KvCache(layers_.size(), kv_heads_ * head_size_, positions));
  }

  void forward(std::span<const TokenId> tokens, Sequence& s) const override {
    const std::size_t count = tokens.size();
    prepare(count, s);
    for (std::size_t t = 0; t < count; ++t) embedding_->decode(static_cast<std::size_t>(tokens[t]), 1, s.x.data() + t * hidden_);
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      attention(index, count, s);
      feed_forward(layers_[index], count, s);
    }
    s.position += count;
  }

  void logits(std::size_t first, std::size_t count, Sequence& s, float* out) const override {
    rms_norm(s.x.data() + first * hidden_, count, norm_, eps_, s.normed.data());
    multiply(lm_head_ ? *lm_head_ : *embedding_, s.normed.data(), count, out);
  }

 private:
  void prepare(std::size_t count, Sequence& s) const {
    for (std::vector<float>* numbers : {&s.x, &s.normed, &s.projected}) numbers->resize(count * hidden_);
    for (std::vector<float>* numbers : {&s.q, &s.attended}) numbers->resize(count * heads_ * head_size_);
    for (std::vector<float>* numbers : {&s.k, &s.v}) numbers->resize(count * kv_heads_ * head_size_);
    for (std::vector<float>* numbers : {&s.gate, &s.up}) numbers->resize(count * inner_);
    rotation_.prepare(s.position, count, s.angles);
    s.cache.reserve(s.position + count);
  }

  void attention(std::size_t index, std::size_t count, Sequence& s) const {
    const Layer& layer = layers_[index];
    rms_norm(s.x.data(), count, layer.input_norm, eps_, s.normed.data());
    multiply(std::array{Product{layer.q.get(), s.q.data()}, Product{layer.k.get(), s.k.data()}, Product{layer.v.get(), s.v.data()}}, s.normed.data(), count);
    const std::size_t width = kv_heads_ * head_size_;
    for (std::size_t t = 0; t < count; ++t) {
      rotation_.apply(s.angles, t, heads_, s.q.data() + t * heads_ * head_size_);
      rotation_.apply(s.angles, t, kv_heads_, s.k.data() + t * width);
      s.cache.put(index, s.position + t, s.k.data() + t * width, s.v.data() + t * width);
    }
    attend(s.cache, index, {heads_, kv_heads_, head_size_, window_}, s.position, count, s.q.data(), s.attended.data());
    multiply(*layer.o, s.attended.data(), count, s.projected.data());
    s.add(s.projected);
  }

  void feed_forward(const Layer& layer, std::size_t count, Sequence& s) const {
    rms_norm(s.x.data(), count, layer.post_attention_norm, eps_, s.normed.data());
    multiply(std::array{Product{layer.gate.get(), s.gate.data()}, Product{layer.up.get(), s.up.data()}}, s.normed.data(), count);
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, s.gate.size(), 16384), [&](const tbb::blocked_range<std::size_t>& range) {
      silu_product(s.gate.data() + range.begin(), s.up.data() + range.begin(), range.size());
    });
    multiply(*layer.down, s.gate.data(), count, s.projected.data());
    s.add(s.projected);
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
};

}  // namespace

std::unique_ptr<const Transformer> make_mistral(const Model& model) {
  return std::make_unique<Mistral>(model, load_matrix(require_tensor(model, "model.embed_tokens.weight")));
}

}  // namespace poise
