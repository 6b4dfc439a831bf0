// family/decoder_plan.hpp defines the computation. Several query heads share one head of keys and values. Position i
// sees the positions j <= i; in a layer with a window, only those with i - window < j.
#include "runtime/decoder.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/activation.hpp"
#include "kernels/rotation.hpp"
#include "runtime/attention.hpp"
#include "runtime/computation.hpp"
#include "runtime/parallel.hpp"

namespace poise {
namespace {

void scale(float* x, std::size_t count, float factor) {
  if (factor == 1.0F) return;
  for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
}

class PlannedTransformer final : public Transformer {
 public:
  // `plan` is that of the whole model, even on one of several ranks.
  PlannedTransformer(DecoderPlan plan, DecoderWeights weights, const Ranks& ranks)
      : Transformer({.vocabulary = weights.vocabulary,
                     .hidden = plan.hidden,
                     .layers = weights.layers.size(),
                     .has_output = plan.output.empty() || weights.output}),
        plan_(std::move(plan)),
        weights_(std::move(weights)),
        ranks_(ranks),
        share_(ranks.find_heads(plan_.heads, plan_.kv_heads)) {
    plan_.heads = share_.heads.size();
    plan_.kv_heads = share_.kv_heads.size();
    for (const RopePlan& rope : plan_.ropes) {
      rotations_.push_back(make_rotation(rope.frequencies, rope.factor));
      long_rotations_.push_back(
          make_rotation(rope.long_frequencies.empty() ? rope.frequencies : rope.long_frequencies, rope.factor));
      if (!rope.long_frequencies.empty()) recompute_after_ = rope.long_after;
    }
  }

  Sequence make_sequence(std::size_t context, CacheType cache) const override {
    std::vector<std::size_t> positions;
    for (const LayerPlan& layer : plan_.layers) {
      // A layer with a window keeps the positions that the first token of a batch sees, and the batch itself.
      positions.push_back(layer.window == 0 ? context : std::min(context, layer.window + kMaxBatch - 1));
    }
    return Sequence(KvCache(cache, {.count = plan_.kv_heads, .size = plan_.head_size}, positions,
                            ranks_.find_layers(plan_.layers.size())));
  }

  bool truncate(std::size_t position, Sequence& s) const override {
    for (std::size_t i = 0; i < plan_.layers.size(); ++i) {
      const std::size_t window = plan_.layers[i].window;
      const std::size_t first =
          window == 0 ? 0
                      : position + 1 - std::min(position + 1, window);  // the first position that the next token sees
      if (s.cache.find_oldest_position(i) > first) return false;
    }
    s.position = position;
    return true;
  }

  std::size_t get_recompute_limit() const override { return recompute_after_; }

  void forward(std::span<const SequenceTokens> batch, Workspace& memory) const override {
    const std::vector<AttentionToken> tokens = prepare_batch(batch, memory);
    embed(batch, memory);
    keep_hidden_states(0, tokens.size(), memory);
    const IndexRange own = ranks_.find_layers(layers());
    for (std::size_t index = 0; index < layers(); ++index) {
      if (index >= own.first && index < own.last) {
        add_attention(index, batch, tokens, memory);
        throw_if_cancelled();
        add_feed_forward(weights_.layers[index], tokens.size(), memory);
        throw_if_cancelled();
      } else {
        for (const SequenceTokens& part : batch)
          part.sequence->cache.count_remote_positions(index, part.sequence->position + part.tokens.size());
      }
      broadcast_hidden_states(index, memory);
      keep_hidden_states(index + 1, tokens.size(), memory);
    }
    for (const SequenceTokens& part : batch) part.sequence->position += part.tokens.size();
  }

  void compute_logits(std::span<const std::size_t> rows, Workspace& memory, float* out) const override {
    float* const x = memory.normed.data();  // has a row for each token of the last forward()
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy_n(memory.x.data() + rows[i] * plan_.hidden, plan_.hidden, x + i * plan_.hidden);
    if (weights_.norm) weights_.norm.apply(x, rows.size(), x);
    if (ranks_.splits_matrices()) {
      compute_logits_share(x, rows.size(), memory, out);
    } else if (ranks_.rank() + 1 == ranks_.count()) {
      multiply(weights_.output ? *weights_.output : *weights_.embedding, x, rows.size(), out, memory.product_options());
    }
    throw_if_cancelled();
    if (ranks_.splits_layers()) {
      ranks_.communicator->broadcast(std::as_writable_bytes(std::span(out, rows.size() * vocabulary_size())),
                                     ranks_.count() - 1);
    }
    scale(out, rows.size() * vocabulary_size(), plan_.logit_scale);
    if (plan_.logit_cap != 0.0F) apply_soft_cap(out, rows.size() * vocabulary_size(), plan_.logit_cap);
  }

 private:
  // Computes this rank's share of the scores, and receives the shares of the others.
  void compute_logits_share(const float* x, std::size_t rows, Workspace& memory, float* out) const {
    std::vector<std::size_t> sizes;
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank) sizes.push_back(rows * find_share_of_scores(rank).size());
    const std::size_t all = rows * vocabulary_size();
    memory.share.resize(all + sizes[ranks_.rank()]);
    const auto own = std::span(memory.share).subspan(all);
    multiply(*weights_.output, x, rows, own.data(), memory.product_options());
    throw_if_cancelled();
    const auto gathered = std::span(memory.share).first(all);
    ranks_.communicator->gather(own, sizes, gathered);
    const float* from = gathered.data();
    for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
      const IndexRange share = find_share_of_scores(rank);
      for (std::size_t row = 0; row < rows; ++row, from += share.size())
        std::copy_n(from, share.size(), out + row * vocabulary_size() + share.first);
    }
  }

  IndexRange find_share_of_scores(std::size_t rank) const {
    const std::size_t step = weights_.output_step;
    const IndexRange share = ranks_.find_share(vocabulary_size() / step, rank);
    return {share.first * step, share.last * step};
  }

  // Sends the hidden states to all ranks if another rank has the next layer, or if this layer is the last.
  void broadcast_hidden_states(std::size_t layer, Workspace& memory) const {
    if (!ranks_.splits_layers()) return;
    const std::size_t owner = ranks_.find_owner(layer, layers());
    if (layer + 1 < layers() && ranks_.find_owner(layer + 1, layers()) == owner) return;
    ranks_.communicator->broadcast(std::as_writable_bytes(std::span(memory.x)), owner);
  }

  Rotation make_rotation(std::vector<float> frequencies, float factor) const {
    for (std::size_t i = 0; i < weights_.rope_divisors.size(); ++i) frequencies[i] /= weights_.rope_divisors[i];
    return {plan_.head_size, std::move(frequencies), factor};
  }

  // Reserves memory for the batch, and computes its rotation angles. Returns its tokens, in order.
  std::vector<AttentionToken> prepare_batch(std::span<const SequenceTokens> batch, Workspace& memory) const {
    std::vector<AttentionToken> tokens;
    memory.angles.resize(std::max(memory.angles.size(), batch.size()));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Sequence& s = *batch[i].sequence;
      const std::size_t count = batch[i].tokens.size();
      for (std::size_t t = 0; t < count; ++t) tokens.push_back({&s.cache, s.position + t});
      memory.angles[i].resize(rotations_.size());
      for (std::size_t rope = 0; rope < rotations_.size(); ++rope)
        choose_rotation(rope, s).compute_angles(s.position, count, memory.angles[i][rope]);
      s.cache.reserve(s.position + count);
    }
    const std::size_t count = tokens.size();
    for (std::vector<float>* numbers : {&memory.x, &memory.normed, &memory.projected})
      numbers->resize(count * plan_.hidden);
    for (std::vector<float>* numbers : {&memory.q, &memory.attended})
      numbers->resize(count * plan_.heads * plan_.head_size);
    for (std::vector<float>* numbers : {&memory.k, &memory.v})
      numbers->resize(count * plan_.kv_heads * plan_.head_size);
    return tokens;
  }

  const Rotation& choose_rotation(std::size_t index, const Sequence& s) const {
    return s.is_long ? long_rotations_[index] : rotations_[index];
  }

  void embed(std::span<const SequenceTokens> batch, Workspace& memory) const {
    float* x = memory.x.data();
    for (const SequenceTokens& part : batch) {
      for (const TokenId token : part.tokens) {
        weights_.embedding->decode(static_cast<std::size_t>(token), 1, x);
        x += plan_.hidden;
      }
    }
    scale(memory.x.data(), memory.x.size(), plan_.embedding_scale);
    if (!weights_.positions) return;
    float* to = memory.projected.data();
    for (const SequenceTokens& part : batch) {
      weights_.positions->decode(part.sequence->position, part.tokens.size(), to);
      to += part.tokens.size() * plan_.hidden;
    }
    memory.add_to_x(memory.projected);
  }

  // Copies the hidden states to memory.kept if the caller has asked for this layer's. Those of the last layer are
  // kept after the final norm.
  void keep_hidden_states(std::size_t layer, std::size_t count, Workspace& memory) const {
    if (memory.kept_layer != layer) return;
    memory.kept.assign(memory.x.begin(), memory.x.begin() + static_cast<std::ptrdiff_t>(count * plan_.hidden));
    if (layer > 0 && ranks_.splits_layers()) {
      ranks_.communicator->broadcast(std::as_writable_bytes(std::span(memory.kept)),
                                     ranks_.find_owner(layer - 1, layers()));
    }
    if (layer == layers() && weights_.norm) weights_.norm.apply(memory.kept.data(), count, memory.kept.data());
  }

  // Returns x after the norm; x itself if there is no norm.
  static const float* apply_norm(const Norm& norm, std::size_t count, Workspace& memory) {
    if (!norm) return memory.x.data();
    norm.apply(memory.x.data(), count, memory.normed.data());
    return memory.normed.data();
  }

  // Computes x += norm(projection). The projection is the sum of the projections of all ranks.
  void add_projected(const Norm& norm, std::size_t count, Workspace& memory) const {
    if (ranks_.splits_matrices()) ranks_.communicator->sum(memory.projected);
    if (norm) norm.apply(memory.projected.data(), count, memory.projected.data());
    memory.add_to_x(memory.projected);
  }

  void add_attention(std::size_t index, std::span<const SequenceTokens> batch, std::span<const AttentionToken> tokens,
                     Workspace& memory) const {
    const DecoderLayer& layer = weights_.layers[index];
    const std::size_t count = tokens.size();
    const std::size_t width = plan_.kv_heads * plan_.head_size;
    const std::size_t q_width = plan_.heads * plan_.head_size;
    project(
        layer.qkv, apply_norm(layer.attention_norm, count, memory), count, memory.product_options(),
        std::array{Target{memory.q.data(), q_width}, Target{memory.k.data(), width}, Target{memory.v.data(), width}},
        memory.fused);
    apply_head_norm(layer.q_norm, plan_.heads, true, count, memory.q.data(), memory);
    apply_head_norm(layer.k_norm, plan_.kv_heads, share_.is_first, count, memory.k.data(), memory);
    std::size_t first = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      rotate_and_cache(index, *batch[i].sequence, batch[i].tokens.size(), memory.angles[i], first, memory);
      first += batch[i].tokens.size();
    }
    const AttentionHeads heads = {.count = plan_.heads,
                                  .kv_count = plan_.kv_heads,
                                  .size = plan_.head_size,
                                  .window = layer.plan.window,
                                  .scale = plan_.attention_scale,
                                  .cap = plan_.attention_cap,
                                  .sinks = layer.sinks.empty() ? nullptr : layer.sinks.data()};
    const bool is_float32 = layer.o.matrix->stored().storage == Storage::f32;
    attend(tokens, index, heads, is_float32 ? Precision::exact : memory.precision, memory.q.data(),
           memory.attended.data());
    project(layer.o, pad_attended(layer, count, memory), count, memory.product_options(), memory.projected.data());
    add_projected(layer.attention_post_norm, count, memory);
  }

  // Returns the attended numbers, padded with zeros to the inputs of `o`, whose first and last blocks may also have
  // inputs from heads of other ranks.
  const float* pad_attended(const DecoderLayer& layer, std::size_t count, Workspace& memory) const {
    const std::size_t from = plan_.heads * plan_.head_size;
    const std::size_t to = layer.o.matrix->inputs();
    if (from == to) return memory.attended.data();
    memory.padded.assign(count * to, 0.0F);
    for (std::size_t t = 0; t < count; ++t)
      std::copy_n(memory.attended.data() + t * from, from, memory.padded.data() + t * to + layer.o_skipped);
    return memory.padded.data();
  }

  // Applies a norm to `heads` heads of each token: to each head alone, or to all heads of all ranks together. Several
  // ranks may share these heads: `counts` is true on the one that adds their squares to the sum.
  void apply_head_norm(const Norm& norm, std::size_t heads, bool counts, std::size_t tokens, float* x,
                       Workspace& memory) const {
    const std::size_t width = heads * plan_.head_size;
    if (norm.whole == 0) {
      if (norm) norm.apply(x, tokens * width / norm.weight.size(), x);
      return;
    }
    memory.squares.assign(tokens, 0.0F);
    for (std::size_t t = 0; counts && t < tokens; ++t) {
      double sum = 0;
      for (const float number : std::span(x + t * width, width))
        sum += static_cast<double>(number) * static_cast<double>(number);
      memory.squares[t] = static_cast<float>(sum);
    }
    ranks_.communicator->sum(memory.squares);
    for (std::size_t t = 0; t < tokens; ++t) {
      const float factor = 1 / std::sqrt(memory.squares[t] / static_cast<float>(norm.whole) + norm.epsilon);
      for (std::size_t i = 0; i < width; ++i) x[t * width + i] *= factor * norm.weight[i];
    }
  }

  // Rotates the queries and keys of a sequence, which begin at row `first` of the batch, and caches keys and values.
  void rotate_and_cache(std::size_t index, Sequence& s, std::size_t count, std::span<const Rotation::Angles> angles,
                        std::size_t first, Workspace& memory) const {
    const std::optional<std::size_t> rope = weights_.layers[index].plan.rope;
    const std::size_t width = plan_.kv_heads * plan_.head_size;
    if (rope) {
      constexpr std::size_t kTokensAtOnce = 8;
      const Rotation& rotation = choose_rotation(*rope, s);
      run_in_parallel(count, kTokensAtOnce, [&](std::size_t begin, std::size_t end) {
        for (std::size_t t = begin; t < end; ++t) {
          rotation.apply(angles[*rope], t, plan_.heads, memory.q.data() + (first + t) * plan_.heads * plan_.head_size);
          rotation.apply(angles[*rope], t, plan_.kv_heads, memory.k.data() + (first + t) * width);
        }
      });
    }
    for (std::size_t t = 0; t < count; ++t)
      s.cache.encode_and_store(index, s.position + t, memory.k.data() + (first + t) * width,
                               memory.v.data() + (first + t) * width);
  }

  void add_feed_forward(const DecoderLayer& layer, std::size_t count, Workspace& memory) const {
    const float* const x = apply_norm(layer.mlp_norm, count, memory);
    if (layer.experts) {
      run_feed_forward(*layer.experts, x, count, memory, memory.projected.data());
    } else {
      run_feed_forward(layer.mlp, x, count, memory.product_options(), memory.network, memory.projected.data());
    }
    add_projected(layer.mlp_post_norm, count, memory);
  }

  DecoderPlan plan_;
  DecoderWeights weights_;
  Ranks ranks_;
  HeadShare share_;
  std::vector<Rotation> rotations_;
  std::vector<Rotation> long_rotations_;
  std::size_t recompute_after_ = 0;
};

}  // namespace

std::unique_ptr<const Transformer> make_decoder(const Model& model, DecoderPlan plan, const Ranks& ranks) {
  DecoderWeights weights = load_decoder(model, plan, ranks);
  return std::make_unique<PlannedTransformer>(std::move(plan), std::move(weights), ranks);
}

}  // namespace poise
