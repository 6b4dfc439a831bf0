// StopTexts cuts a text, which arrives in pieces, where a stop text begins. Of several stop texts, the one that is
// complete first counts; if several end at the same place, the longest. The result does not depend on the pieces.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/tokenizer.hpp>

namespace poise {

class StopTexts {
 public:
  // Throws bad_argument for an empty stop text.
  explicit StopTexts(std::vector<std::string> stops);

  // Adds a piece. Returns the text that is certainly not a part of a stop text; holds back the end if it may begin one.
  // Returns an empty text after a stop text.
  std::string add(std::string_view piece);
  // Ends the text. Returns the text that was held back, if there was no stop text.
  std::string finish();
  bool is_stopped() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

// Decodes generated tokens to text, in pieces of whole characters, cut where a stop text begins.
class ContinuationStream {
 public:
  // `before` has the tokens that the text continues; tokens that only pad the embedding are allowed. Throws
  // bad_argument for an empty stop text. Requires: the tokenizer outlives this.
  ContinuationStream(const Tokenizer& tokenizer, std::span<const TokenId> before,
                     const std::vector<std::string>& stops);

  // Adds a token. Returns the text that is now certain; empty after a stop text. Throws bad_argument for an id outside
  // the vocabulary.
  std::string add(TokenId token) { return stops_.add(stream_.add(token)); }
  // Ends the text. Returns the text that was held back, if there was no stop text.
  std::string finish() {
    std::string text = stops_.add(stream_.finish());
    return text += stops_.finish();
  }
  // Returns true if a stop text was found.
  bool is_stopped() const { return stops_.is_stopped(); }

 private:
  TextStream stream_;
  StopTexts stops_;
};

}  // namespace poise
