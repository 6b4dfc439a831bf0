// Session: a model that runs. Feed it tokens, read the scores of the next one, or let it generate.
//
//   poise::Session session(poise::open("model.alt"));
//   session.generate("Once upon a time", {.max_tokens = 100},
//                    [](std::string_view text) { std::cout << text << std::flush; return true; });
//
// Token by token:
//
//   session.feed(session.prompt("Once upon a time"));
//   session.generate({.max_tokens = 100}, [&](poise::TokenId token) { ...; return true; });
//
// A Session borrows the mapped bytes of the model's blobs and keeps them alive; the Model itself may be destroyed. It
// computes with several threads. Several sessions may share one model's weights: see weights.hpp.
//
// Thread safety: const functions change nothing, and several threads may call them at once. While a function that is
// not const runs, no other call may.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <poise/cache_type.hpp>
#include <poise/error.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/sampler.hpp>
#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

namespace poise {

// Asks for speculation: a draft guesses tokens, and one pass of the model checks them all. The scores of each token are
// the same as without a draft, bit for bit. At temperature 0 the text is the same, too. A sampled text is the same if
// the guesses come from the text itself. With a draft model it may differ, but each token has the same probability
// (rejection sampling).
struct DraftOptions {
  // A faster model with the same vocabulary. Null: the guesses come from the text itself. They are the tokens that
  // followed an earlier occurrence of its last tokens.
  std::shared_ptr<const Weights> model = {};
  // The largest number of guesses at a time, 1 to 64. A pass of 15 guesses and the token before them reads the weights
  // once.
  std::size_t most = 15;
};

struct SessionOptions {
  unsigned threads = 0;     // the largest number of threads; 0: one per processor
  std::size_t context = 0;  // the largest number of positions; 0: max_position_embeddings
  // Multiplies weights with float32 numbers, which is slower; for comparisons. Otherwise Poise may round the numbers
  // that weights are multiplied by, to integers or bfloat16 (docs/quantization.md).
  bool exact = false;
  // The type of stored keys and values, including the draft's (docs/quantization.md). std::nullopt: f16, or f32 if
  // `exact` is set. feed() throws unsupported for numbers that the type cannot hold.
  std::optional<CacheType> cache = {};
  std::optional<DraftOptions> draft = {};
};

// Counts guesses of a draft.
struct DraftCounts {
  std::size_t guessed = 0;  // tokens that the draft proposed and the model checked
  std::size_t right = 0;    // guesses that became part of the text
};

struct GenerateOptions {
  std::size_t max_tokens = 128;
  SamplingOptions sampling = {};
  std::optional<TokenId> stop_id = {};  // ends the text; without it, the end tokens that the files name
                                        // (docs/tokenizers.md), or 3 for a Tiny Llama without vocabulary
  bool ignore_eos = false;              // true: neither end tokens nor stop_id end the text
  std::vector<std::string> stop = {};   // the text ends before the first of these texts; none may be empty
};

// Names the reason why a text ended.
enum class StopReason { end_of_text, max_tokens, context_full, callback, stop_text };
// Returns the name that JSON outputs use: "length" for max_tokens, "context" for context_full, else "stop".
std::string_view finish_reason(StopReason reason);

struct Generation {
  std::vector<TokenId> tokens;  // including an end token
  StopReason reason = StopReason::max_tokens;
};

class Session {
 public:
  // Prepares the weights of a model. Throws unsupported, naming what the model lacks or what Poise does not run;
  // invalid_file, listing every disagreement between configuration, vocabulary and tensors; bad_argument for invalid
  // options, and for a draft with another vocabulary, naming the difference; and what reading the model's blobs throws.
  explicit Session(const Model& model, const SessionOptions& options = {});
  // Shares weights with other sessions, even on other threads. Throws bad_argument for null, for invalid options, and
  // for a draft with another vocabulary; unsupported for weights without an output matrix.
  explicit Session(std::shared_ptr<const Weights> weights, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  bool has_tokenizer() const;
  // Returns the tokenizer of the model's vocabulary. Throws unsupported when the model has no vocabulary.
  const Tokenizer& tokenizer() const;
  // Encodes text as Tokenizer::encode_with_special() does, usually with BOS in front. Throws unsupported when the model
  // has no vocabulary.
  std::vector<TokenId> prompt(std::string_view text) const;

  const Weights& weights() const;       // the shared weights
  std::size_t vocabulary_size() const;  // the length of logits(); the tokenizer may know fewer tokens
  std::size_t context() const;          // the maximum number of positions
  std::size_t position() const;         // tokens fed so far

  // Returns all tokens that were fed. Valid until the next non-const call.
  std::span<const TokenId> tokens() const;

  // Drops all tokens.
  void reset();

  // Drops all tokens after the first `position`, and the pending one. Unless `position` is position(), logits() needs
  // another feed(), which recomputes what layers with a sliding window have dropped. Throws bad_argument beyond
  // position().
  void truncate(std::size_t position);

  // Returns an independent session with the same tokens and scores, on the same weights. Copies the cache.
  Session fork() const;

  // Writes the tokens, their keys and values, and the scores of the next token to a zTensor file (docs/chat.md), with a
  // fingerprint of the model. Throws bad_argument for an existing file unless `overwrite`, unsupported for numbers that
  // are not finite, io, and what reading the model's blobs throws.
  void save(const std::filesystem::path& path, bool overwrite = false) const;

  // Replaces all tokens and scores with those of a file that save() wrote. Throws what open() throws; bad_argument for
  // a file of another model or with another type of cache, and for one with more tokens than context(); invalid_file
  // for one in which verify() finds an error or a warning (a digest that does not match, bytes between the parts), for
  // tokens that the model does not have, tensors of other shapes and numbers that are not finite. After an exception
  // the session is as it was.
  void load(const std::filesystem::path& path);

  // Appends tokens and computes the scores of the next one. `progress` counts tokens instead of bytes. Throws
  // bad_argument, before any computation, for an unknown id or when the tokens do not fit the context; unsupported for
  // numbers that the cache cannot hold; cancelled soon after `stop` is requested or `progress` returns false. After
  // an exception the session holds the tokens that were computed: position() is their number.
  void feed(std::span<const TokenId> tokens, const std::stop_token& stop = {}, const Progress& progress = {});

  // Returns the scores of the next token, by id. Valid until the next non-const call. Throws bad_argument before the
  // first token, and after truncate() has dropped tokens, until something is fed.
  std::span<const float> logits() const;

  // Returns the next token, as the sampler chooses it. The token is pending until something is fed. Throws what
  // logits() and Sampler throw.
  TokenId sample(Sampler& sampler);
  // Returns the counts of guesses since the session began or was forked.
  DraftCounts draft_counts() const;
  // Returns the token that was generated last but not fed, which generate(text) feeds first; std::nullopt if there is
  // none.
  std::optional<TokenId> pending() const;

  // Returns the hidden state of the last token fed, after the final norm, from which logits() are computed:
  // [weights().hidden_size()]. Valid until the next non-const call. Throws what logits() throws, and bad_argument after
  // load() until something is fed.
  std::span<const float> hidden_state() const;

  // Starts over, feeds all tokens, and returns the hidden state of each: [tokens.size(), weights().hidden_size()], row
  // by row. As in transformers' `hidden_states`, layer 0 is the embedding (scaled, and with positions, where the family
  // has these), layer i the output of block i, and the last layer, Weights::layers(), the output of the last block
  // after the final norm. Throws bad_argument for a layer beyond that, and what feed() throws.
  std::vector<float> hidden_states(std::span<const TokenId> tokens, std::size_t layer,
                                   const std::stop_token& stop = {});

  // Appends up to max_tokens tokens, passing each to `on_token`, which may return false to stop. Stops after an end
  // token (invisible in text) and when the context is full. The last token is not fed: feed it to continue. Throws
  // bad_argument before the first token and for a stop_id that is not a token, and what Sampler and `on_token` throw.
  // With options.stop it stops after the token that completes one of these texts, and throws unsupported without a
  // vocabulary.
  Generation generate(const GenerateOptions& options, const std::function<bool(TokenId)>& on_token = {});

  // Feeds prompt(text) and generates; returns only the continuation. If the session has tokens, it feeds the pending
  // token, then `text` without BOS; `text` may be empty. `on_text` gets each piece of the continuation as soon as later
  // tokens cannot change it; pieces end where a character ends, and the text of options.stop is cut off. It may return
  // false to stop. Throws unsupported without a vocabulary, and what feed() and generate() throw. (A template, so that
  // generate({}) means the options.)
  template <typename Text>
  requires std::convertible_to<const Text&, std::string_view> std::string generate(
      const Text& text, const GenerateOptions& options = {},
      const std::function<bool(std::string_view)>& on_text = {}) {
    return continue_text(text, options, on_text);
  }

  // Starts over, feeds all tokens, and returns the natural logarithm of the probability of each except the first, given
  // those before it. The perplexity of the sequence is exp(-mean). Throws what feed() throws.
  std::vector<double> log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop = {});

 private:
  std::string continue_text(std::string_view text, const GenerateOptions& options,
                            const std::function<bool(std::string_view)>& on_text);

  // Returns the session as a model for save(). The model borrows keys and values.
  Model snapshot() const;
  // Replaces the session's state by that of a model from snapshot(), for load(). Calls `confirm`, which may throw,
  // before it changes anything.
  void restore(const Model& model, const std::function<void()>& confirm);

  class State;
  explicit Session(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace poise
