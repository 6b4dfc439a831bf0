// The parts of Weights.
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
  std::vector<TokenId> ends = {};  // each ends a text by default

  // True if the token ends a text. With `stop`, only that token does.
  bool ends_text(TokenId token, const std::optional<TokenId>& stop) const {
    return stop ? token == *stop : std::ranges::find(ends, token) != ends.end();
  }
};

// Throws bad_argument, with `what` before the id, for a token outside the model.
void require_token(const Weights& weights, std::string_view what, TokenId token);

// The positions of a session with these options. Throws bad_argument for more than the model has.
std::size_t context_of(const Weights& weights, const SessionOptions& options);

// The scores of tokens with a text; an embedding may have more rows, as padding. All without a tokenizer.
std::span<const float> choices(const Weights& weights, std::span<const float> logits);

}  // namespace poise
