// Transformer: the weights of a model, and the computation of scores for the next token of a sequence. One interface
// for all architectures.
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
  Precision precision = Precision::fast;  // of products with weights
  InputObserver* observer = nullptr;      // of their inputs; null: none

  // The layer whose hidden states forward() keeps, from 0 (the embedding) to Transformer::layers() (the final norm);
  // and these, of the tokens computed last: [tokens, Transformer::hidden_size()].
  std::optional<std::size_t> kept_layer;
  std::vector<float> kept;

  // Of the tokens computed last, each [tokens, width]. A transformer takes what it needs.
  std::vector<float> x;  // passed from layer to layer
  std::vector<float> normed;
  std::vector<float> projected;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> attended;
  std::vector<float> fused;    // the output of a matrix of several parts
  std::vector<float> squares;  // summed by norms over the heads of all ranks
  std::vector<float> padded;   // attended, with zeros for heads of other ranks
  std::vector<float> share;    // scores of all ranks, and then those of this one
  NetworkMemory network;
  std::vector<float> scores;                          // of experts
  std::vector<float> gathered;                        // the input of an expert
  std::vector<float> expert_out;                      // and its output
  std::vector<NetworkMemory> experts;                 // of experts that run in parallel
  std::vector<std::vector<Rotation::Angles>> angles;  // [sequences, rotary embeddings]

  ProductOptions products() const { return {precision, observer}; }

  // Computes x += y.
  void add(const std::vector<float>& y) {
    run_in_parallel(x.size(), kLeastNumbers, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) x[i] += y[i];
    });
  }
};

class Transformer {
 public:
  // The maximum number of tokens for one call of forward().
  static constexpr std::size_t kMaxBatch = 512;

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

  // Returns how many of the `left` tokens of a text are computed next, at most `most`. Never leaves the last token
  // alone: a single token would be summed in another order. (So are the last few, KernelInput::Form.)
  static std::size_t count_next(std::size_t left, std::size_t most = kMaxBatch) {
    return left == most + 1 ? most - 1 : std::min(most, left);
  }

  // Returns the number of tokens beyond which callers recompute a sequence from the first token, with
  // Sequence::is_long; 0: they never do.
  virtual std::size_t get_recompute_limit() const = 0;
  // Returns true if a sequence of that many tokens is long.
  bool is_long(std::size_t tokens) const { return get_recompute_limit() != 0 && tokens > get_recompute_limit(); }

  // Returns an empty sequence for up to `context` positions, whose keys and values are stored as that type.
  virtual Sequence begin(std::size_t context, CacheType cache) const = 0;

  // Cuts a sequence back to its first `position` tokens, so that forward() continues from there, and returns true if it
  // could: layers with a window drop positions that they no longer see. Requires: the sequence has that many tokens.
  virtual bool truncate(std::size_t position, Sequence& sequence) const = 0;

  // Appends tokens to sequences that begin() made, and multiplies the tokens of all of them by each weight once. Keeps
  // the hidden states of Workspace::kept_layer, which is at most layers().
  // Requires: different sequences, each with a token or more; 1 to kMaxBatch tokens in all, all known, and room for
  // them. Throws cancelled, with the sequences as they were, when the calling task's group is cancelled meanwhile.
  virtual void forward(std::span<const SequenceTokens> batch, Workspace& memory) const = 0;

  // Computes the scores after some tokens of the last forward() in this memory: out [rows, vocabulary_size()]. `rows`
  // counts the tokens of all its sequences, in order. Their hidden states after the final norm are then in
  // memory.normed, [rows, hidden_size()]. Throws cancelled likewise. Requires: has_output().
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

// Returns the transformer for a model's architecture. Borrows the tensors' mapped bytes; the model itself may be
// destroyed. Throws unsupported, naming what is missing or what Poise does not run, and invalid_file listing every
// disagreement between configuration and tensors.
// As one of several ranks it holds its share of the weights; all ranks then make the same calls. When a call ends early
// on one rank (cancelled, or a number that the cache does not hold), the others wait in it: the caller has to end them.
std::unique_ptr<const Transformer> make_transformer(const Model& model, const Ranks& ranks = {});

}  // namespace poise
