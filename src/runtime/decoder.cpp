// What is computed is said in family/decoder_plan.hpp. Several query heads share one head of keys and values. Position
// i sees the positions j with i - window < j <= i.
#include "runtime/decoder.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/rotation.hpp"
#include "runtime/attention.hpp"
#include "runtime/cancelled.hpp"
#include "runtime/decoder_weights.hpp"
#include "runtime/feed_forward.hpp"

namespace poise {
namespace {

void scale(float* x, std::size_t count, float factor) {
  if (factor == 1.0F) return;
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

class Decoder final : public Transformer {
 public:
  Decoder(DecoderPlan plan, DecoderWeights weights)
      : Transformer(weights.output ? weights.output->outputs() : weights.embedding->rows()),
        plan_(std::move(plan)),
        weights_(std::move(weights)) {
    for (const RopePlan& rope : plan_.ropes) {
      rotations_.push_back(rotation(rope.frequencies, rope.factor));
      long_rotations_.push_back(
          rotation(rope.long_frequencies.empty() ? rope.frequencies : rope.long_frequencies, rope.factor));
      if (!rope.long_frequencies.empty()) recompute_after_ = rope.long_after;
    }
  }

  Sequence begin(std::size_t context) const override {
    std::vector<std::size_t> positions;
    for (const LayerPlan& layer : plan_.layers) {
      // With a window: what the first token of a batch sees, and the batch.
      positions.push_back(layer.window == 0 ? context : std::min(context, layer.window + kMaxBatch - 1));
    }
    return Sequence(KvCache(plan_.kv_heads * plan_.head_size, positions));
  }

  bool truncate(std::size_t position, Sequence& s) const override {
    for (std::size_t i = 0; i < plan_.layers.size(); ++i) {
      const std::size_t window = plan_.layers[i].window;
      const std::size_t first = window == 0 ? 0 : position + 1 - std::min(position + 1, window);  // that is seen next
      if (s.cache.oldest(i) > first) return false;
    }
    s.position = position;
    return true;
  }

  std::size_t recompute_after() const override { return recompute_after_; }

  void forward(std::span<const TokenId> tokens, Sequence& s) const override {
    const std::size_t count = tokens.size();
    prepare(count, s);
    embed(tokens, s);
    for (std::size_t index = 0; index < weights_.layers.size(); ++index) {
      attention(index, count, s);
      require_wanted();
      add_feed_forward(weights_.layers[index], count, s);
      require_wanted();
    }
    s.position += count;
  }

  void logits(std::size_t first, std::size_t count, Sequence& s, float* out) const override {
    const float* x = s.x.data() + first * plan_.hidden;
    if (weights_.norm) {
      weights_.norm.apply(x, count, s.normed.data());
      x = s.normed.data();
    }
    multiply(weights_.output ? *weights_.output : *weights_.embedding, x, count, out, s.precision);
    require_wanted();
    scale(out, count * vocabulary_size(), plan_.logit_scale);
    if (plan_.logit_cap != 0.0F) soft_cap(out, count * vocabulary_size(), plan_.logit_cap);
  }

 private:
  Rotation rotation(std::vector<float> frequencies, float factor) const {
    for (std::size_t i = 0; i < weights_.rope_divisors.size(); ++i) frequencies[i] /= weights_.rope_divisors[i];
    return {plan_.head_size, std::move(frequencies), factor};
  }

  void prepare(std::size_t count, Sequence& s) const {
    for (std::vector<float>* numbers : {&s.x, &s.normed, &s.projected}) numbers->resize(count * plan_.hidden);
    for (std::vector<float>* numbers : {&s.q, &s.attended}) numbers->resize(count * plan_.heads * plan_.head_size);
    for (std::vector<float>* numbers : {&s.k, &s.v}) numbers->resize(count * plan_.kv_heads * plan_.head_size);
    s.angles.resize(rotations_.size());
    for (std::size_t i = 0; i < rotations_.size(); ++i) rotation_of(i, s).prepare(s.position, count, s.angles[i]);
    s.cache.reserve(s.position + count);
  }

  const Rotation& rotation_of(std::size_t index, const Sequence& s) const {
    return s.is_long ? long_rotations_[index] : rotations_[index];
  }

  void embed(std::span<const TokenId> tokens, Sequence& s) const {
    for (std::size_t t = 0; t < tokens.size(); ++t)
      weights_.embedding->decode(static_cast<std::size_t>(tokens[t]), 1, s.x.data() + t * plan_.hidden);
    scale(s.x.data(), s.x.size(), plan_.embedding_scale);
    if (!weights_.positions) return;
    weights_.positions->decode(s.position, tokens.size(), s.projected.data());
    s.add(s.projected);
  }

  // The norm of x, or x itself where there is none.
  static const float* normed(const Norm& norm, std::size_t count, Sequence& s) {
    if (!norm) return s.x.data();
    norm.apply(s.x.data(), count, s.normed.data());
    return s.normed.data();
  }

  // x += the norm of what has been projected
  static void add_projected(const Norm& norm, std::size_t count, Sequence& s) {
    if (norm) norm.apply(s.projected.data(), count, s.projected.data());
    s.add(s.projected);
  }

  void attention(std::size_t index, std::size_t count, Sequence& s) const {
    const DecoderLayer& layer = weights_.layers[index];
    const std::size_t width = plan_.kv_heads * plan_.head_size;
    const std::size_t q_width = plan_.heads * plan_.head_size;
    project(layer.qkv, normed(layer.attention_norm, count, s), count, s.precision,
            std::array{Target{s.q.data(), q_width}, Target{s.k.data(), width}, Target{s.v.data(), width}}, s.fused);
    if (layer.q_norm) layer.q_norm.apply(s.q.data(), count * q_width / layer.q_norm.weight.size(), s.q.data());
    if (layer.k_norm) layer.k_norm.apply(s.k.data(), count * width / layer.k_norm.weight.size(), s.k.data());
    for (std::size_t t = 0; t < count; ++t) {
      if (layer.plan.rope) {
        const Rotation& rotation = rotation_of(*layer.plan.rope, s);
        const Rotation::Angles& angles = s.angles[*layer.plan.rope];
        rotation.apply(angles, t, plan_.heads, s.q.data() + t * q_width);
        rotation.apply(angles, t, plan_.kv_heads, s.k.data() + t * width);
      }
      s.cache.put(index, s.position + t, s.k.data() + t * width, s.v.data() + t * width);
    }
    const AttentionHeads heads = {.count = plan_.heads,
                                  .kv_count = plan_.kv_heads,
                                  .size = plan_.head_size,
                                  .window = layer.plan.window,
                                  .scale = plan_.attention_scale,
                                  .cap = plan_.attention_cap,
                                  .sinks = layer.sinks.empty() ? nullptr : layer.sinks.data()};
    attend(s.cache, index, heads, s.position, count, s.q.data(), s.attended.data());
    project(layer.o, s.attended.data(), count, s.precision, s.projected.data());
    add_projected(layer.attention_post_norm, count, s);
  }

  void add_feed_forward(const DecoderLayer& layer, std::size_t count, Sequence& s) const {
    const float* const x = normed(layer.mlp_norm, count, s);
    if (layer.experts) {
      feed_forward(*layer.experts, x, count, s, s.projected.data());
    } else {
      feed_forward(layer.mlp, x, count, s.precision, s.network, s.projected.data());
    }
    add_projected(layer.mlp_post_norm, count, s);
  }

  DecoderPlan plan_;
  DecoderWeights weights_;
  std::vector<Rotation> rotations_;
  std::vector<Rotation> long_rotations_;
  std::size_t recompute_after_ = 0;
};

}  // namespace

std::unique_ptr<const Transformer> make_decoder(const Model& model, DecoderPlan plan) {
  DecoderWeights weights = load_decoder(model, plan);
  return std::make_unique<Decoder>(std::move(plan), std::move(weights));
}

}  // namespace poise
