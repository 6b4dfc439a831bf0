// Embedder computes a vector for each text, for search and comparison, from a model's hidden states for the tokens of
// the text.
//
//   poise::Embedder embedder(poise::load_weights(poise::open("model.gguf")), {.pooling = poise::Pooling::mean});
//   const std::vector<float> vectors = embedder.embed(texts);    // [texts.size(), embedder.size()]
//
// Short texts are computed together, so that each weight is read once for many of them. Each vector equals that of the
// text alone, up to the rounding of sums and of the cache; with SessionOptions::exact it is identical. Only one thread
// at a time may use an Embedder, which computes with several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <poise/progress.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

namespace poise {

// Chooses how the hidden states of a text's tokens become one vector.
enum class Pooling : std::uint8_t {
  last,  // the hidden state of the last token, which has seen all others
  mean,  // the mean of the hidden states of all tokens, BOS and EOS included
};

struct EmbedOptions {
  Pooling pooling = Pooling::last;
  std::optional<std::size_t> layer = {};  // the layer that Session::hidden_states() takes; std::nullopt: the last
  bool normalize = false;                 // divides each vector by its Euclidean norm
};

class Embedder {
 public:
  // Throws bad_argument for a layer that the model does not have, and for options as Session does.
  explicit Embedder(std::shared_ptr<const Weights> weights, const EmbedOptions& options = {},
                    const SessionOptions& session = {});
  ~Embedder();
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;

  // Returns the number of elements of a vector.
  std::size_t size() const;

  // Returns the vectors of texts, [texts.size(), size()], row by row. Tokenizer::encode_with_special() adds the special
  // tokens of the vocabulary to each text. `progress` counts tokens instead of bytes. Throws unsupported without a
  // vocabulary, and for hidden states that are not finite; bad_argument for a text without tokens, and for one that is
  // longer than the context; cancelled.
  std::vector<float> embed(std::span<const std::string> texts, const Progress& progress = {},
                           const std::stop_token& stop = {});
  // Returns the same for token ids, without special tokens around them. Throws bad_argument for an unknown id.
  std::vector<float> embed(std::span<const std::vector<TokenId>> texts, const Progress& progress = {},
                           const std::stop_token& stop = {});

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace poise
