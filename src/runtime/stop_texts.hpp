// StopTexts: cuts a text that arrives in pieces where a stop text begins. Of several stop texts the one that is
// complete first counts; of several that end at the same place, the longest. The division into pieces makes no
// difference.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/tokenizer.hpp>

namespace poise {

class StopTexts {
 public:
  // Throws bad_argument for an empty text.
  explicit StopTexts(std::vector<std::string> stops);

  // Returns the text that certainly precedes a stop text, after this piece: holds back a suffix that may begin one.
  // Returns an empty text after it has found a stop text.
  std::string add(std::string_view piece);
  // Returns the text held back, if it ends without a stop.
  std::string finish();
  bool has_found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

// Makes the text of generated tokens, in pieces of whole characters, cut where a stop text begins.
class ContinuationStream {
 public:
  // Takes `before`, the tokens that the text continues; padding of the embedding may be among them. Throws bad_argument
  // for an empty stop text. Requires: the tokenizer outlives this.
  ContinuationStream(const Tokenizer& tokenizer, std::span<const TokenId> before,
                     const std::vector<std::string>& stops);

  // Returns the text that is certain after this token; empty after a stop text. Throws bad_argument for an id outside
  // the vocabulary.
  std::string add(TokenId token) { return stops_.add(stream_.add(token)); }
  // Returns the text held back, if it ends without a stop text.
  std::string finish() { return stops_.add(stream_.finish()) + stops_.finish(); }
  // Returns true if a stop text was found.
  bool is_stopped() const { return stops_.has_found(); }

 private:
  TextStream stream_;
  StopTexts stops_;
};

}  // namespace poise
