#include "runtime/text_end.hpp"

#include <algorithm>

namespace poise {

TextEnd::TextEnd(const Weights& weights, std::span<const TokenId> before, const GenerateOptions& options)
    : weights_(weights), stop_id_(options.stop_id), ignore_eos_(options.ignore_eos) {
  if (stop_id_) require_token(weights, "stop id", *stop_id_);
  for (const auto& [token, bias] : options.sampling.logit_bias) require_token(weights, "logit-bias: token", token);
  if (options.stop.empty()) return;
  stop_.emplace(StopWatch{StopTexts(options.stop), TextStream(weights.tokenizer())});
  // The last tokens decide on the space before the first word, and on a character's first bytes.
  constexpr std::size_t kLooksBack = 1024;
  for (const TokenId token : before.last(std::min(before.size(), kLooksBack))) {
    if (static_cast<std::size_t>(token) < weights.tokenizer().vocabulary().size()) stop_->stream.add(token);
  }
}

std::optional<StopReason> TextEnd::after(TokenId token) {
  if (!ignore_eos_ && weights_.parts().ends_text(token, stop_id_)) return StopReason::end_of_text;
  if (!stop_) return std::nullopt;
  stop_->texts.add(stop_->stream.add(token));
  return stop_->texts.found() ? std::optional(StopReason::stop_text) : std::nullopt;
}

}  // namespace poise
