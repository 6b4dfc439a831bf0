// Declares the parts of Weights, and functions on them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/session.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>
#include <poise/weights.hpp>

#include "io/threads.hpp"
#include "runtime/ranks.hpp"
#include "runtime/transformer.hpp"

namespace poise {

struct Weights::Parts {
  std::unique_ptr<const Transformer> transformer;
  std::optional<Tokenizer> tokenizer = {};
  std::size_t max_context = 0;
  std::vector<TokenId> ends = {};  // by default, each of these ends a text
  std::vector<Tensor> tensors = {};
  Attributes config = {};  // whole_config() of the model
  LazyValue<const std::string> fingerprint = {};
};

// Returns the weights of one of several ranks. Throws what load_weights() and require_same_headers() throw.
std::shared_ptr<const Weights> load_weights(const Model& model, const Ranks& ranks);

// Returns the weights. Throws bad_argument with the problem if they are null.
std::shared_ptr<const Weights> require_weights(std::shared_ptr<const Weights> weights, const char* problem);

// Throws bad_argument, with `what` before the id, for a token outside the model.
void require_token(const Weights& weights, std::string_view what, TokenId token);
// Throws bad_argument for a stop_id or a token of logit_bias outside the model, and for an empty stop text; unsupported
// for stop texts without a vocabulary.
void require_valid_options(const Weights& weights, const GenerateOptions& options);

// Throws unsupported for a model without an output matrix.
void require_output_matrix(const Weights& weights);

// Returns true if a generated token ends the text: options.stop_id, by default each of Parts::ends. Returns false if
// options.ignore_eos is true.
bool ends_text(const Weights& weights, TokenId token, const GenerateOptions& options);

// Returns compute_fingerprint() of the model, computed once.
std::string find_fingerprint(const Weights& weights);

// Throws bad_argument for a layer beyond the model's last one.
void require_layer(const Weights& weights, std::size_t layer);

// Returns the number of positions of a session with these options. Throws bad_argument if the model has fewer.
std::size_t find_context(const Weights& weights, const SessionOptions& options);

// Returns options.cache; by default f32 for options.exact, else f16.
CacheType choose_cache_type(const SessionOptions& options);

// Returns the scores of tokens that have a text: an embedding may have more rows, as padding. Returns all scores if
// there is no tokenizer.
std::span<const float> drop_padding_scores(const Weights& weights, std::span<const float> logits);

// Returns a fingerprint of a model, whatever file it comes from: "xxh3:" and 16 digits. It covers names, shapes, types
// and all bytes of the tensors, in any order, and the configuration. Reads the bytes once, which takes about as long as
// computing one token. Different models rarely have equal fingerprints by chance, but somebody can make two that do.
// Throws what reading the blobs throws.
std::string compute_fingerprint(const std::vector<Tensor>& tensors, const Attributes& config);

// Returns a fingerprint of all that turns text into tokens and back: "xxh3:" and 16 digits. It covers tokens, merges,
// special ids and the algorithm with its settings, but no chat template.
std::string compute_vocabulary_fingerprint(const Vocabulary& vocabulary);

}  // namespace poise
