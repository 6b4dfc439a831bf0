// Tiny Llama is a small GPT-like model. Its classes have the interface that the specification "Tiny Llama Weight File
// Format" describes.
//
//   poise::TinyLlamaModel model;                       // 512 dimensions, 6 layers, random weights
//   model.save_model_weights("model_weights.bin");
//   poise::TinyLlamaModel loaded;
//   loaded.load_model_weights("model_weights.bin");    // must have the configuration of `loaded`
//
// For everything else - converting, verifying, zero-copy access - use such a file as a Model: poise::open().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <poise/error.hpp>
#include <poise/model.hpp>
#include <poise/sampler.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

// Holds the sizes of a model, named as in the document.
struct ModelConfig {
  std::int32_t model_dim = 512;
  std::int32_t num_layers = 6;
  std::int32_t num_heads = 8;
  std::int32_t ffn_hidden_dim = 2048;
  std::int32_t max_seq_length = 1024;
  std::int32_t vocab_size = 32000;
  float dropout = 0.1F;  // stored; inference does not use it

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// Reports a file that cannot be written, or cannot be loaded: it is missing, has another magic number, version,
// configuration or dimensions, is too short or too long, or cannot be read. kind(), path() and offset() identify the
// fault and its place; the message names layer, matrix, the expected value and the value that was found.
class FileIOException : public Error {
 public:
  explicit FileIOException(const Error& cause) : Error(cause.kind(), cause.message(), cause.path(), cause.offset()) {}
};

// Holds a model with its weights. Only one thread at a time may use it.
class TinyLlamaModel {
 public:
  // Draws weights from a normal distribution with standard deviation 0.02 (norms 1, biases 0), the same every time.
  // Throws bad_argument for an invalid configuration: a size below 1, heads that do not divide the dimension.
  explicit TinyLlamaModel(const ModelConfig& config = {});
  // Returns the model in a file, with any configuration. Throws FileIOException.
  static TinyLlamaModel from_file(const std::filesystem::path& path);
  ~TinyLlamaModel();
  TinyLlamaModel(TinyLlamaModel&&) noexcept;
  TinyLlamaModel& operator=(TinyLlamaModel&&) noexcept;

  const ModelConfig& config() const;

  // Writes header and weights; replaces an existing file, whole or not at all. Throws FileIOException.
  void save_model_weights(const std::filesystem::path& path) const;
  // Replaces the weights by those of a file, which stay in the mapped file. The file must have the same configuration.
  // Throws FileIOException; the model is then unchanged.
  void load_model_weights(const std::filesystem::path& path);

  // Loads vocab.txt and merges.txt. Throws FileIOException, also for more tokens than vocab_size.
  void load_tokenizer(const std::filesystem::path& vocab, const std::filesystem::path& merges);

  // Returns logits [tokens, vocab_size]; row t predicts the token after t. Throws bad_argument for no tokens, for one
  // out of range, and for more than max_seq_length.
  std::vector<float> forward(std::span<const TokenId> tokens);

  // Continues a text, with <bos> first, until <eos>, max_tokens or the end of the positions; returns only the
  // continuation. Throws unsupported without a tokenizer.
  std::string generate(std::string_view prompt, std::size_t max_tokens = 100, const SamplingOptions& sampling = {});
  // Continues token ids in the same way, without <bos> first.
  std::vector<TokenId> generate(std::span<const TokenId> prompt, std::size_t max_tokens = 100,
                                const SamplingOptions& sampling = {});

  // Returns the weights as a Model.
  const Model& model() const;

 private:
  class State;
  explicit TinyLlamaModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Reads vocab.txt and merges.txt as a vocabulary for any Model. Throws not_found, io, and invalid_file naming the line.
Vocabulary read_tiny_llama_vocabulary(const std::filesystem::path& vocab, const std::filesystem::path& merges);

}  // namespace poise
