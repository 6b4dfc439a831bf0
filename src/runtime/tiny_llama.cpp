// The Tiny Llama architecture (docs/formats/tiny-llama.md). With x [tokens, D] = embedding + position, for each layer:
//
//   x += output(attention(query(n), key(n), value(n)))   with n = layer_norm(x, norm1)
//   x += linear2(gelu(linear1(m) + bias)) + bias         with m = layer_norm(x, norm2)
//
// and in the end logits = output_projection(x). Weights are [in, out]: y = x W.
#include <array>
#include <vector>

#include <fmt/format.h>

#include "family/tiny_llama.hpp"
#include "kernels/activation.hpp"
#include "kernels/norm.hpp"
#include "runtime/attention.hpp"
#include "runtime/matrix.hpp"
#include "runtime/recipes.hpp"

namespace poise {
namespace {

struct Norm {
  std::vector<float> weight;
  std::vector<float> bias;

  void apply(const float* x, std::size_t tokens, float* out) const { layer_norm(x, tokens, weight, bias, kTinyLlamaNormEps, out); }
};

struct Layer {
  std::unique_ptr<Matrix> query;
  std::unique_ptr<Matrix> key;
  std::unique_ptr<Matrix> value;
  std::unique_ptr<Matrix> output;
  std::unique_ptr<Matrix> linear1;
  std::unique_ptr<Matrix> linear2;
  std::vector<float> bias1;
  std::vector<float> bias2;
  Norm norm1;
  Norm norm2;
};

std::unique_ptr<Matrix> load_weight(const Tensor& tensor) { return load_matrix(tensor, Orientation::in_out); }

Layer load_layer(const Model& model, std::int64_t index) {
  const auto tensor = [&](std::string_view name) -> const Tensor& { return require_tensor(model, fmt::format("layers.{}.{}", index, name)); };
  return {load_weight(tensor("attention.query.weight")),
          load_weight(tensor("attention.key.weight")),
          load_weight(tensor("attention.value.weight")),
          load_weight(tensor("attention.output.weight")),
          load_weight(tensor("ffn.linear1.weight")),
          load_weight(tensor("ffn.linear2.weight")),
          load_vector(tensor("ffn.linear1.bias")),
          load_vector(tensor("ffn.linear2.bias")),
          {load_vector(tensor("norm1.weight")), load_vector(tensor("norm1.bias"))},
          {load_vector(tensor("norm2.weight")), load_vector(tensor("norm2.bias"))}};
}

// Adds a bias to each token's numbers.
void add_bias(std::vector<float>& y, const std::vector<float>& bias) {
  for (std::size_t i = 0; i < y.size(); i += bias.size()) {
    for (std::size_t j = 0; j < bias.size(); ++j) y[i + j] += bias[j];
  }
}

class TinyLlama final : public Transformer {
 public:
  explicit TinyLlama(const Model& model)
      : Transformer(static_cast<std::size_t>(model.config->vocab_size)),
        size_(static_cast<std::size_t>(model.config->hidden_size)),
        heads_(static_cast<std::size_t>(model.config->num_attention_heads)),
        embedding_(load_matrix(require_tensor(model, "embedding.weight"))),
        position_(load_matrix(require_tensor(model, "position_embedding.weight"))),
        output_(load_weight(require_tensor(model, "output_projection.weight"))) {
    for (std::int64_t index = 0; index < model.config->num_hidden_layers; ++index) layers_.push_back(load_layer(model, index));
  }

  Sequence begin(std::size_t context) const override { return Sequence(KvCache(layers_.size(), size_, context)); }

  void forward(std::span<const TokenId> tokens, Sequence& s) const override {
    const std::size_t count = tokens.size();
    for (std::vector<float>* numbers : {&s.x, &s.normed, &s.q, &s.k, &s.v, &s.attended, &s.projected}) numbers->resize(count * size_);
    s.cache.reserve(s.position + count);
    for (std::size_t t = 0; t < count; ++t) embedding_->decode(static_cast<std::size_t>(tokens[t]), 1, s.x.data() + t * size_);
    position_->decode(s.position, count, s.projected.data());
    s.add(s.projected);
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      attention(index, count, s);
      feed_forward(layers_[index], count, s);
    }
    s.position += count;
  }

  void logits(std::size_t first, std::size_t count, Sequence& s, float* out) const override { multiply(*output_, s.x.data() + first * size_, count, out); }

 private:
  void attention(std::size_t index, std::size_t count, Sequence& s) const {
    const Layer& layer = layers_[index];
    layer.norm1.apply(s.x.data(), count, s.normed.data());
    multiply(std::array{Product{layer.query.get(), s.q.data()}, Product{layer.key.get(), s.k.data()}, Product{layer.value.get(), s.v.data()}}, s.normed.data(),
             count);
    for (std::size_t t = 0; t < count; ++t) s.cache.put(index, s.position + t, s.k.data() + t * size_, s.v.data() + t * size_);
    attend(s.cache, index, {heads_, heads_, size_ / heads_}, s.position, count, s.q.data(), s.attended.data());
    multiply(*layer.output, s.attended.data(), count, s.projected.data());
    s.add(s.projected);
  }

  void feed_forward(const Layer& layer, std::size_t count, Sequence& s) const {
    layer.norm2.apply(s.x.data(), count, s.normed.data());
    s.gate.resize(count * layer.bias1.size());
    multiply(*layer.linear1, s.normed.data(), count, s.gate.data());
    add_bias(s.gate, layer.bias1);
    gelu(s.gate.data(), s.gate.size());
    multiply(*layer.linear2, s.gate.data(), count, s.projected.data());
    add_bias(s.projected, layer.bias2);
    s.add(s.projected);
  }

  std::size_t size_;
  std::size_t heads_;
  std::unique_ptr<Matrix> embedding_;
  std::unique_ptr<Matrix> position_;
  std::unique_ptr<Matrix> output_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<const Transformer> make_tiny_llama(const Model& model) { return std::make_unique<TinyLlama>(model); }

}  // namespace poise
