// TextEnd: whether a text that is being generated ends with the token that was chosen last.
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
  // `before`: the tokens that the text has. Throws bad_argument for a stop_id or a token of logit_bias that the model
  // does not have, and unsupported for texts to stop at where there is no vocabulary. Requires: weights outlive this.
  TextEnd(const Weights& weights, std::span<const TokenId> before, const GenerateOptions& options);

  // end_of_text, stop_text, or nothing where the text goes on after this token.
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
