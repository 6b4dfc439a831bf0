// Encoder: text to token ids; one implementation for every way in which vocabularies do it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <poise/tokenizer.hpp>

namespace poise {

// U+2581, which stands for a space in SentencePiece's tokens.
inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";

class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;
};

// Each encoder refers to the vocabulary, which must outlive it.
std::unique_ptr<Encoder> make_sentencepiece_bpe(const Vocabulary& vocabulary);
std::unique_ptr<Encoder> make_byte_pair(const Vocabulary& vocabulary);

}  // namespace poise
