// Session: a model that runs. Feed it tokens, read the scores of the next one, or let it generate.
//
//   poise::Session session(poise::open("model.alt"));
//   session.generate("Once upon a time", {.max_tokens = 100}, [](std::string_view text) { std::cout << text <<
//   std::flush; return true; });
//
// or token by token:
//
//   session.feed(session.prompt("Once upon a time"));
//   session.generate({.max_tokens = 100}, [&](poise::TokenId token) { ...; return true; });
//
// A Session borrows the mapped bytes of the model's blobs and keeps them alive; the Model itself may go. It is used
// from one thread at a time and computes with several. Several sessions may share one model's weights: see weights.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/sampler.hpp>
#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

namespace poise {

struct SessionOptions {
  unsigned threads = 0;     // at most; 0: one per processor
  std::size_t context = 0;  // positions at most; 0: max_position_embeddings
  // Products with weights are of float32 numbers, however weights are stored: otherwise what they are multiplied with
  // is rounded to integers for quantized ones (docs/quantization.md), and to parts of bfloat16 where the processor has
  // a matrix unit. Slower; for comparisons.
  bool exact = false;
};

struct GenerateOptions {
  std::size_t max_tokens = 128;
  SamplingOptions sampling = {};
  std::optional<TokenId> stop_id = {};  // ends the text; without it each token that the files name
                                        // (docs/tokenizers.md), for a Tiny Llama without vocabulary 3
  bool ignore_eos = false;              // no token ends the text; stop_id does not count
  std::vector<std::string> stop = {};   // texts, each of which ends the text before it; not empty ones
};

enum class StopReason { end_of_text, max_tokens, context_full, callback, stop_text };

struct Generation {
  std::vector<TokenId> tokens;  // with the end-of-text token, where that ended it
  StopReason reason = StopReason::max_tokens;
};

class Session {
 public:
  // Throws unsupported, saying what the model lacks or what it has that Poise does not run; invalid_file, listing every
  // disagreement between configuration, vocabulary and tensors; bad_argument; and what reading its blobs throws.
  explicit Session(const Model& model, const SessionOptions& options = {});
  // On weights that other sessions, of other threads too, may use at the same time. Throws bad_argument.
  explicit Session(std::shared_ptr<const Weights> weights, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  bool has_tokenizer() const;
  // Throws unsupported when the model has no vocabulary.
  const Tokenizer& tokenizer() const;
  // Encodes text, with BOS first if the vocabulary has one.
  std::vector<TokenId> prompt(std::string_view text) const;

  std::size_t vocabulary_size() const;  // the length of logits(); the tokenizer may know fewer tokens
  std::size_t context() const;          // positions there is room for
  std::size_t position() const;         // tokens fed so far

  // All tokens that were fed. Valid until the next non-const call.
  std::span<const TokenId> tokens() const;

  // Forgets all tokens.
  void reset();

  // Forgets all tokens but the first `position`. logits() wait for the next feed(), which computes the others again
  // where layers with a window no longer have what it looks at. Throws bad_argument beyond position().
  void truncate(std::size_t position);

  // A session with the same tokens and scores that goes on by itself, on the same weights. Copies the cache.
  Session fork() const;

  // Appends tokens. Throws bad_argument, before anything is computed, for an id the model does not have or when they do
  // not fit the context; cancelled soon after `stop` is requested, also in the middle of a long computation. The
  // session then has the first position() of all tokens that it was given. `progress` counts tokens, where it counts
  // bytes elsewhere; it cancels likewise.
  void feed(std::span<const TokenId> tokens, const std::stop_token& stop = {}, const Progress& progress = {});

  // The scores of the next token, by id. Valid until the next non-const call. Throws bad_argument before the first
  // token.
  std::span<const float> logits() const;

  // Appends up to max_tokens tokens, handing each to `on_token`, which may return false to stop. Stops after the
  // end-of-text token (which is invisible in text) and when the context is full. The last token is not fed: feed it to
  // go on. Throws bad_argument before the first token and for a stop_id that is not a token, and what Sampler and
  // `on_token` throw. With options.stop it ends after the token in whose text one of them ends; throws unsupported
  // where there is no vocabulary then.
  Generation generate(const GenerateOptions& options, const std::function<bool(TokenId)>& on_token = {});

  // Feeds prompt(text) and generates: the text of the continuation alone. After the first token of a session it feeds
  // the text without BOS, and before it the last token that was generated, unless something was fed since: the text
  // goes on, and may be empty. `on_text` gets each piece of the continuation as soon as it is certain: pieces end where
  // a character ends, and options.stop cuts it exactly. It may return false to stop. Throws unsupported without a
  // vocabulary, and what feed() and generate() throw. (A template, so that generate({}) means the options.)
  template <typename Text>
  requires std::convertible_to<const Text&, std::string_view> std::string generate(
      const Text& text, const GenerateOptions& options = {},
      const std::function<bool(std::string_view)>& on_text = {}) {
    return continue_text(text, options, on_text);
  }

  // Starts over, feeds all tokens, and gives the natural logarithm of the probability of each but the first, given
  // those before it. The perplexity of the sequence is exp(-mean). Throws what feed() throws.
  std::vector<double> log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop = {});

 private:
  std::string continue_text(std::string_view text, const GenerateOptions& options,
                            const std::function<bool(std::string_view)>& on_text);

  class State;
  explicit Session(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace poise
