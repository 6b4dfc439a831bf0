// What Weights are made of.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

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

}  // namespace poise
