// ContinuationStream: the text of generated tokens, in pieces of whole characters, cut where a stop text begins.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <poise/tokenizer.hpp>

#include "runtime/stop_texts.hpp"

namespace poise {

class ContinuationStream {
 public:
  // `before`: the tokens that the text continues; padding of the embedding may be among them. Throws bad_argument for
  // an empty stop text. Requires: the tokenizer outlives this.
  ContinuationStream(const Tokenizer& tokenizer, std::span<const TokenId> before,
                     const std::vector<std::string>& stops);

  // The text that is certain after this token; empty after a stop text. Throws bad_argument for an id outside the
  // vocabulary.
  std::string add(TokenId token) { return stops_.add(stream_.add(token)); }
  // The text held back, if it ends without a stop text.
  std::string finish() { return stops_.add(stream_.finish()) + stops_.finish(); }
  // A stop text was found.
  bool is_stopped() const { return stops_.found(); }

 private:
  TextStream stream_;
  StopTexts stops_;
};

}  // namespace poise
