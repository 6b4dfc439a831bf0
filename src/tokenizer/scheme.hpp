// TokenScheme: how one kind of vocabulary makes token ids of text and text of token ids; one implementation a kind (kinds.cpp).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poise/tokenizer.hpp>

namespace poise {

// Decodes one text, token by token.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;

  // Appends what the token adds to the text, but for bytes that do not make up a character yet. Requires: the vocabulary has the token.
  virtual void add(TokenId token, std::string& text) = 0;
  // Appends what was held back. The decoder then starts anew.
  virtual void finish(std::string& text) = 0;
};

class TokenScheme {
 public:
  virtual ~TokenScheme() = default;

  // As Tokenizer::encode() has it.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;
  // Requires: the scheme outlives the decoder.
  virtual std::unique_ptr<TextDecoder> decoder() const = 0;
};

// Throws unsupported when a text has to be changed before it is cut into tokens.
void require_identity(const Vocabulary& vocabulary);

}  // namespace poise
