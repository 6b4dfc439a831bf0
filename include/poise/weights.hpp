// Weights: what the sessions of one model share. Loaded once and constant.
//
//   const auto weights = poise::load_weights(poise::open("model.alt"));
//   poise::Session one(weights);
//   poise::Session another(weights);    // of another thread, perhaps; only its cache takes memory
//
// Weights borrow the mapped bytes of the model's blobs and keep them alive; the Model itself may be destroyed. A const
// Weights is thread-safe; sessions on it may run in parallel, each in one thread at a time.
#pragma once

#include <cstddef>
#include <memory>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

class Weights {
 public:
  struct Parts;  // internal
  explicit Weights(std::unique_ptr<const Parts> parts);
  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  std::size_t vocabulary_size() const;  // scores of each token; the tokenizer may know fewer tokens
  std::size_t hidden_size() const;      // numbers of a hidden state
  std::size_t layers() const;           // blocks of attention and feed-forward network
  std::size_t max_context() const;      // max_position_embeddings
  bool has_tokenizer() const;
  // Returns the tokenizer of the model's vocabulary. Throws unsupported when the model has no vocabulary.
  const Tokenizer& tokenizer() const;

  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<const Parts> parts_;
};

// Checks the model and prepares its weights; does not copy what Poise multiplies in stored form. Throws unsupported,
// naming what the model lacks or what Poise does not run; invalid_file, listing every disagreement between
// configuration, vocabulary and tensors; and what reading its blobs throws.
std::shared_ptr<const Weights> load_weights(const Model& model);

}  // namespace poise
