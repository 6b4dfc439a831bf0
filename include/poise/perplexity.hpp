// Perplexity measures how well a model predicts texts, and how far its predictions are from those of another model,
// such as the one that it was quantized from.
//
//   poise::Perplexity perplexity(poise::load_weights(poise::open("q4.gguf")),
//                                poise::load_weights(poise::open("f16.gguf")));
//   for (const std::string& text : texts) perplexity.add(text);
//   std::cout << perplexity.result().perplexity.value << "\n";
//
// For a document that is longer than the context: perplexity.add_windows(document, {.size = 512}).
//
// Memory does not grow with the texts: a Perplexity keeps the scores of 64 tokens at a time, of both models. Only one
// thread at a time may use it; it computes with several threads.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include <poise/progress.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

namespace poise {

// Holds a number that is computed from a sample of tokens.
struct Estimate {
  double value = 0;
  double standard_error = 0;  // computed as if tokens were independent of each other; NaN for a single token
};

// Describes how well a model predicted all texts so far.
struct PerplexityResult {
  // Compares the model with a base. Divergences (kl) are in nats, from the base's distribution P of the next token to
  // the model's Q: the sum of P(t) ln(P(t) / Q(t)) over all tokens t.
  struct Comparison {
    Estimate base_perplexity;
    Estimate ratio;  // perplexity / base_perplexity; its relative error is less than theirs, since they vary together
    Estimate kl_mean;
    double kl_max = 0;
    Estimate same_top;  // the share of tokens for which both models predict the same best token; ties: the lower id
  };

  std::size_t texts = 0;
  std::size_t windows = 0;  // the number of windows of add_windows()
  std::size_t tokens = 0;   // predicted tokens: with add() all but the first of each text
  Estimate perplexity;      // exp(-mean of the natural logarithms of their probabilities)
  std::optional<Comparison> against = {};
};

// Divides a document that may be longer than the context into windows. Each window is computed alone, from its first
// token on.
struct PerplexityWindows {
  std::size_t size = 512;  // tokens of a window: from 4 to the context
  // 0: as in llama-perplexity of llama.cpp. Windows follow each other; BOS replaces the first token of each if the
  // vocabulary begins texts with BOS; a window predicts its tokens after index size / 2; tokens at the end that fill no
  // window are left out. Otherwise as in papers and the documentation of transformers: a window begins every `stride`
  // tokens (at most `size`), and predicts the tokens that no window before it had, but never its own first token; the
  // last window ends with the document.
  std::size_t stride = 0;
};

class Perplexity {
 public:
  // Begins without texts. With a base, both models predict the same tokens. Throws bad_argument for a base with another
  // vocabulary, naming the difference, and for options as Session does.
  explicit Perplexity(std::shared_ptr<const Weights> model, std::shared_ptr<const Weights> base = nullptr,
                      const SessionOptions& options = {});
  ~Perplexity();
  Perplexity(Perplexity&&) noexcept;
  Perplexity& operator=(Perplexity&&) noexcept;

  // Adds a text: its tokens by encode_with_special(), then EOS if the vocabulary has it. `progress` counts tokens
  // instead of bytes. Throws unsupported without a vocabulary, and for a probability of 0 or NaN; bad_argument for a
  // text that the two models encode differently, and for one that is longer than the context; cancelled. After an
  // exception the text is left out.
  void add(std::string_view text, const Progress& progress = {}, const std::stop_token& stop = {});
  // Adds token ids as a text, without BOS and EOS around them. Throws bad_argument for an unknown id.
  void add(std::span<const TokenId> tokens, const Progress& progress = {}, const std::stop_token& stop = {});

  // Adds a document in windows, as one text: its tokens by encode_with_special(). Throws what add() throws, and
  // bad_argument for an invalid size or stride, and for a document without a token to predict.
  void add_windows(std::string_view document, const PerplexityWindows& windows, const Progress& progress = {},
                   const std::stop_token& stop = {});
  // Adds token ids as a document, without BOS before them.
  void add_windows(std::span<const TokenId> document, const PerplexityWindows& windows, const Progress& progress = {},
                   const std::stop_token& stop = {});

  // Returns the result of all texts so far. Throws bad_argument when no token was predicted yet.
  PerplexityResult result() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace poise
