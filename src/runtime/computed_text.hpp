// ComputedText holds the text of a session with its cache, scores and hidden state. It can be saved as a model in a
// file.
//
// Such a model has the tensors
//
//   tokens            i32 [tokens]
//   logits            f32 [vocabulary]        if the last token has been computed
//   layers.<i>.keys          [positions, width]  keys after rotation, of the last computed positions that the layer
//                                                has, as the cache stores them (f32, f16 or i8)
//   layers.<i>.keys.scales   f32 [positions, heads * groups]  if the cache has scales
//   layers.<i>.values, layers.<i>.values.scales  the same
//
// and the attribute poise.session: {"version": 1, "model": fingerprint, "cache": type, "position": computed tokens,
// "pending": id}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "runtime/kv_cache.hpp"
#include "runtime/transformer.hpp"

namespace poise {

struct ComputedText {
  explicit ComputedText(Sequence empty) : sequence(std::move(empty)) {}

  Sequence sequence;
  std::vector<TokenId> tokens = {};      // the tokens that were fed; the sequence may have fewer, or guesses after them
  std::optional<TokenId> pending = {};   // the token that was generated last, until it or other tokens are fed
  std::vector<float> logits = {};        // empty: the last token has to be computed
  std::vector<float> hidden_state = {};  // the logits are computed from it; empty after read_session_model()
};

// Returns true for a model with the attribute of a session.
bool is_session(const Model& model);

// Returns the text as a model, which reads keys and values from `text`. Throws unsupported for a score that is not
// finite; reading the model throws unsupported for keys and values that are not finite. Requires: `text` outlives the
// model.
Model make_session_model(const ComputedText& text, const std::string& fingerprint);

// Reads a text from a model. Throws invalid_file if the model is not a session, or one with faults; unsupported if the
// session has another version; bad_argument if it has another fingerprint or cache type, or more tokens than fit; and
// what reading its blobs throws. After an error, `text` is unusable. Requires: `text` is empty, with room for `context`
// positions.
void read_session_model(const Model& model, const std::string& fingerprint, const Transformer& transformer,
                        std::size_t context, ComputedText& text);

}  // namespace poise
