// Transformer computes the scores for the next token of a sequence from the weights of a model. It is one interface for
// all architectures.
//
// A const Transformer is thread-safe; each thread needs its own sequence. The work runs on the threads of the calling
// task arena.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "family/decoder_plan.hpp"
#include "kernels/product.hpp"
#include "kernels/rotation.hpp"
#include "runtime/kv_cache.hpp"
#include "runtime/matrix.hpp"
#include "runtime/parallel.hpp"
#include "runtime/ranks.hpp"

namespace poise {

// Holds the working memory of a feed-forward network.
struct NetworkMemory {
  std::vector<float> gate;
  std::vector<float> up;
  std::vector<float> fused;
};

// Holds a transformer's working memory. Callers keep one, so that it is not allocated for each token.
struct Workspace {
  Precision precision = Precision::fast;  // the precision of products with weights
  InputObserver* observer = nullptr;      // gets the inputs of the products; null for none

  // The layer whose hidden states forward() keeps, from 0 (the embedding) to Transformer::layers() (the final norm).
  // `kept` has these for the tokens that were computed last: [tokens, Transformer::hidden_size()].
  std::optional<std::size_t> kept_layer;
  std::vector<float> kept;

  // Working memory for the tokens that were computed last: `x` to `attended` are [tokens, width]. A transformer uses
  // the arrays that it needs.
  std::vector<float> x;  // passed from layer to layer
  std::vector<float> normed;
  std::vector<float> projected;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> attended;
  std::vector<float> fused;    // the output of a matrix of several parts
  std::vector<float> squares;  // the sums of squares that norms add up over all ranks
  std::vector<float> padded;   // `attended` with zeros for heads of other ranks
  std::vector<float> share;    // scores of all ranks, and then those of this one
  NetworkMemory network;
  std::vector<float> scores;                          // the scores of the experts
  std::vector<float> gathered;                        // the input of an expert
  std::vector<float> expert_out;                      // the output of an expert, or of all experts of a single token
  std::vector<NetworkMemory> experts;                 // one for each expert that runs in parallel
  std::vector<std::vector<Rotation::Angles>> angles;  // [sequences, rotary embeddings]

  ProductOptions product_options() const { return {precision, observer}; }

  void add_to_x(const std::vector<float>& y) {
    run_in_parallel(x.size(), kLeastNumbers, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) x[i] += y[i];
    });
  }
};

class Transformer {
 public:
  // One call of forward() takes at most this many tokens.
  static constexpr std::size_t kMaxBatch = 512;
  // A measure of a text computes at most this many rows of scores at a time, to limit memory: a row has a float32 for
  // each token of the vocabulary.
  static constexpr std::size_t kScoreRows = 64;

  virtual ~Transformer() = default;
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  // Returns the length of a row of logits.
  std::size_t vocabulary_size() const { return sizes_.vocabulary; }
  // Returns the length of a hidden state.
  std::size_t hidden_size() const { return sizes_.hidden; }
  std::size_t layers() const { return sizes_.layers; }
  // Returns false for a decoder that was saved without its output matrix: it has hidden states, and no scores.
  bool has_output() const { return sizes_.has_output; }

  // Returns how many of the `left` tokens of a text are computed next, at most `most`. Never leaves a single last
  // token, because a single token would be summed in another order.
  static std::size_t count_next_tokens(std::size_t left, std::size_t most = kMaxBatch) {
    return left == most + 1 ? most - 1 : std::min(most, left);
  }

  // Returns the number of tokens beyond which callers recompute a sequence from the first token, with
  // Sequence::is_long; 0: they never do.
  virtual std::size_t get_recompute_limit() const = 0;
  // Returns true if a sequence of `tokens` tokens has to be recomputed (get_recompute_limit()).
  bool is_long(std::size_t tokens) const { return get_recompute_limit() != 0 && tokens > get_recompute_limit(); }

  // Returns an empty sequence for up to `context` positions.
  virtual Sequence make_sequence(std::size_t context, CacheType cache) const = 0;

  // Cuts a sequence to its first `position` tokens, so that forward() continues from there. Returns false if that is
  // not possible, because layers with a window have dropped positions that they would need. Requires: the sequence has
  // that many tokens.
  virtual bool truncate(std::size_t position, Sequence& sequence) const = 0;

  // Appends the tokens to their sequences, and computes their hidden states. Throws cancelled, with the positions of
  // the sequences unchanged, if the calling task's group is cancelled meanwhile. Requires: the sequences differ; each
  // gets a token or more, and has room for its tokens; all together get 1 to kMaxBatch; the vocabulary has all ids.
  virtual void forward(std::span<const SequenceTokens> batch, Workspace& memory) const = 0;

  // Computes the scores after some tokens of the last forward() with this memory: out [rows, vocabulary_size()]. `rows`
  // has the indices of these tokens in the whole batch. Afterwards memory.normed has their hidden states after the
  // final norm, [rows, hidden_size()]. Throws cancelled, as forward() does. Requires: has_output().
  virtual void compute_logits(std::span<const std::size_t> rows, Workspace& memory, float* out) const = 0;

 protected:
  struct Sizes {
    std::size_t vocabulary = 0;
    std::size_t hidden = 0;
    std::size_t layers = 0;
    bool has_output = true;
  };
  explicit Transformer(const Sizes& sizes) : sizes_(sizes) {}

 private:
  Sizes sizes_;
};

// Returns a transformer with the weights of the model, or this rank's share of them. Throws an error with the reason if
// Poise cannot run the model. All ranks must call the transformer's functions in the same order. If a call ends early
// on one rank (it is cancelled, or the cache cannot hold a number), the other ranks wait in the same call without end,
// and the caller has to end these ranks.
std::unique_ptr<const Transformer> make_transformer(const Model& model, const Ranks& ranks = {});

}  // namespace poise
