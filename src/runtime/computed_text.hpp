// ComputedText: a session's text, and what its transformer has computed of it.
//
// As a model, for a file, it has
//
//   tokens            i32 [tokens]
//   logits            f32 [vocabulary]        where the last token is computed
//   layers.<i>.keys          [positions, width]  of the last computed positions that the layer has, after rotation: the
//                                                codes of the cache (f32, f16 or i8)
//   layers.<i>.keys.scales   f32 [positions, heads * groups]  where the cache has scales
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
  std::vector<TokenId> tokens = {};      // all tokens fed; the sequence has computed the first of them
  std::optional<TokenId> pending = {};   // the token that was generated last, until something is fed
  std::vector<float> logits = {};        // empty: the last token has to be computed
  std::vector<float> hidden_state = {};  // that these are computed from; empty after read_session_model()
};

// Returns true for a model with the attribute of a session.
bool is_session(const Model& model);

// Returns the text as a model, which borrows its keys and values. Throws unsupported for numbers that are not finite.
Model make_session_model(const ComputedText& text, const std::string& fingerprint);

// Reads a text from a model. Requires: `text` is empty, with room for `context` positions. Throws, and leaves it
// unusable: invalid_file for a model that is not a session, bad_argument for a session of another fingerprint or type
// of cache or with more tokens than fit, and what reading its blobs throws.
void read_session_model(const Model& model, const std::string& fingerprint, const Transformer& transformer,
                        std::size_t context, ComputedText& text);

}  // namespace poise
