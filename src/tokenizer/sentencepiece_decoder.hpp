// Text of token ids as SentencePiece makes it, whatever algorithm cut the text.
//
// Byte tokens are bytes, and those that make up no character read as U+FFFD; U+2581 is a space; the space that encoding puts in front goes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/scheme.hpp"
#include "tokenizer/surface.hpp"

namespace poise {

// U+2581: a space in SentencePiece's tokens.
inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";

// A scheme that decodes as SentencePiece does.
class SentencePieceScheme : public PlainScheme {
 public:
  explicit SentencePieceScheme(const Vocabulary& vocabulary);

  std::unique_ptr<TextDecoder> decoder(SpecialTokens special) const final;

 private:
  std::vector<Surface> surfaces_;
};

}  // namespace poise
