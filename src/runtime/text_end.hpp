// TextEnd: decides whether a generated text ends with the last chosen token.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <poise/session.hpp>

#include "runtime/stop_texts.hpp"
#include "runtime/weights.hpp"

namespace poise {

class TextEnd {
 public:
  // `before`: the text's tokens so far. Throws bad_argument for a stop_id or a token of logit_bias outside the model,
  // and unsupported for stop texts without a vocabulary. Requires: weights outlive this.
  TextEnd(const Weights& weights, std::span<const TokenId> before, const GenerateOptions& options);

  // end_of_text, stop_text, or nothing if the text continues after this token.
  std::optional<StopReason> after(TokenId token);

 private:
  struct StopWatch {
    StopTexts texts;
    TextStream stream;
  };

  const Weights& weights_;
  std::optional<TokenId> stop_id_;
  bool ignore_eos_;
  std::optional<StopWatch> stop_;
};

}  // namespace poise
