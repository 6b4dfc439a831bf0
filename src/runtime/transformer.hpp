// Transformer: token ids at positions in, scores for the next token out. One implementation for every architecture.
//
// Not safe to use from several threads at once; the work inside runs on the threads of the calling task arena.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

class Transformer {
 public:
  // The most tokens that one call of forward() takes.
  static constexpr std::size_t kMaxBatch = 256;

  virtual ~Transformer() = default;
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  // Tokens it knows: the length of a row of logits.
  std::size_t vocabulary_size() const { return vocabulary_size_; }

  // Computes tokens at positions [position, position + tokens.size()), looking back at those before, which must have been
  // computed in order; position 0 starts anew. Requires: 1 to kMaxBatch tokens, all known, positions inside the context.
  virtual void forward(std::span<const TokenId> tokens, std::size_t position) = 0;

  // The scores of what follows tokens [first, first + count) of the last forward(): out [count, vocabulary_size()].
  virtual void logits(std::size_t first, std::size_t count, float* out) = 0;

 protected:
  explicit Transformer(std::size_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

 private:
  std::size_t vocabulary_size_;
};

// The transformer for a model's architecture, with room for `context` positions. Borrows the tensors' mapped bytes; the
// model itself may go. Throws unsupported, saying what is missing or what cannot be run, and invalid_file listing every
// disagreement between configuration and tensors.
std::unique_ptr<Transformer> make_transformer(const Model& model, std::size_t context);

// Mistral and Llama. Requires: configuration and tensors have been checked.
std::unique_ptr<Transformer> make_mistral(const Model& model, std::size_t context);

// Tiny Llama. Requires: the same.
std::unique_ptr<Transformer> make_tiny_llama(const Model& model, std::size_t context);

}  // namespace poise
