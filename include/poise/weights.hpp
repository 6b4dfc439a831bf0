// Weights: the matrices and the tokenizer of a model, which its sessions share. They are loaded once and never change.
//
//   const auto weights = poise::load_weights(poise::open("model.alt"));
//   poise::Session one(weights);
//   poise::Session another(weights);    // for another thread; only its cache takes more memory
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

  std::size_t vocabulary_size() const;  // the length of Session::logits(); the tokenizer may have fewer tokens
  std::size_t hidden_size() const;      // the length of a hidden state
  std::size_t layers() const;           // the number of blocks of attention and feed-forward network
  std::size_t max_context() const;      // max_position_embeddings
  bool has_tokenizer() const;
  // Returns the tokenizer of the model's vocabulary. Throws unsupported when the model has no vocabulary.
  const Tokenizer& tokenizer() const;

  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<const Parts> parts_;
};

// Checks the model and prepares its weights. A matrix stays in the mapped file if Poise can multiply by its stored
// form; others are copied. Throws unsupported, naming what the model lacks or what Poise does not run; invalid_file,
// listing every disagreement between configuration, vocabulary and tensors; and what reading the model's blobs throws.
std::shared_ptr<const Weights> load_weights(const Model& model);

}  // namespace poise
