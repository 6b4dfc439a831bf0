// ComputedText: a session's text, and what its transformer has computed of it.
//
// As a model, for a file, it has
//
//   tokens            i32 [tokens]
//   logits            f32 [vocabulary]        where the last token is computed
//   layers.<i>.keys   f32 [positions, width]  of the last computed positions that the layer has, after rotation
//   layers.<i>.values f32 [positions, width]
//
// and the attribute poise.session: {"version": 1, "model": fingerprint, "position": computed tokens, "pending": id}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "runtime/sequence.hpp"
#include "runtime/transformer.hpp"

namespace poise {

struct ComputedText {
  explicit ComputedText(Sequence empty) : sequence(std::move(empty)) {}

  Sequence sequence;
  std::vector<TokenId> tokens = {};     // all tokens fed; the sequence has computed the first of them
  std::optional<TokenId> pending = {};  // the token that was generated last, until something is fed
  std::vector<float> logits = {};       // empty: the last token has to be computed
};

// Borrows the text's keys and values. Throws unsupported for numbers that are not finite.
Model to_model(const ComputedText& text, const std::string& fingerprint);

// Requires: `text` is empty, with room for `context` positions. Throws, and leaves it unusable: invalid_file for what
// is not such a model, bad_argument for one of another fingerprint or with more tokens than fit, and what reading its
// blobs throws.
void from_model(const Model& model, const std::string& fingerprint, const Transformer& transformer, std::size_t context,
                ComputedText& text);

}  // namespace poise
