// What Weights are made of.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <poise/session.hpp>
#include <poise/weights.hpp>

#include "runtime/transformer.hpp"

namespace poise {

struct Weights::Parts {
  std::unique_ptr<const Transformer> transformer;
  std::optional<Tokenizer> tokenizer = {};
  std::size_t max_context = 0;
  std::vector<TokenId> ends = {};  // each of them ends a text unless told otherwise

  // Does the token end a text? Where `stop` is given, it alone does.
  bool ends_text(TokenId token, const std::optional<TokenId>& stop) const {
    return stop ? token == *stop : std::ranges::find(ends, token) != ends.end();
  }
};

// Throws bad_argument, with `what` before the id, where the model does not have the token.
void require_token(const Weights& weights, std::string_view what, TokenId token);

// The positions of a session with these options. Throws bad_argument for more than the model has.
std::size_t context_of(const Weights& weights, const SessionOptions& options);

// The scores of tokens that have a text; an embedding may have more rows, as padding. All where there is no tokenizer.
std::span<const float> choices(const Weights& weights, std::span<const float> logits);

}  // namespace poise
