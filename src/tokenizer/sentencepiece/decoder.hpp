// Decodes as SentencePiece does, for any of its algorithms. A denormalizer, if there is one, then changes the text.
//
// Byte tokens are bytes, and invalid ones become U+FFFD; U+2581 is a space; the space that encoding puts in front is
// dropped.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {

// A scheme that decodes as SentencePiece does.
class SentencePieceScheme : public TokenScheme {
 public:
  explicit SentencePieceScheme(const Vocabulary& vocabulary);

  std::unique_ptr<TextDecoder> make_decoder(SpecialTokens special) const final;

 private:
  std::vector<TokenDisplay> displays_;
  std::optional<SentencePieceNormalizer> denormalizer_;
};

}  // namespace poise
