// What Weights are made of.
#pragma once

#include <optional>

#include <poise/weights.hpp>

#include "runtime/transformer.hpp"

namespace poise {

struct Weights::Parts {
  std::unique_ptr<const Transformer> transformer;
  std::optional<Tokenizer> tokenizer = {};
  std::size_t max_context = 0;
  TokenId end_of_text = -1;  // what ends a text unless told otherwise; -1: nothing
};

}  // namespace poise
