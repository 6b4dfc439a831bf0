// TokenScheme: encodes and decodes texts with one kind of vocabulary; one implementation for each kind (kinds.cpp).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poise/tokenizer.hpp>

#include "tokenizer/pipeline/special_around.hpp"

namespace poise {

// Decodes one text, token by token.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;

  // Appends the token's text, except bytes that do not complete a character yet. Requires: the vocabulary has the
  // token.
  virtual void add(TokenId token, std::string& text) = 0;
  // Appends what was held back. The decoder then starts over.
  virtual void finish(std::string& text) = 0;
};

class TokenScheme {
 public:
  virtual ~TokenScheme() = default;

  // See Tokenizer::encode().
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;
  // See Tokenizer::encode(ChatText). Kinds that never find special tokens in texts encode them as any text.
  virtual std::vector<TokenId> encode_chat(std::string_view text, std::string_view) const { return encode(text); }
  // Puts the special tokens around a text's tokens (special_around.hpp).
  virtual std::vector<TokenId> with_special(std::vector<TokenId> tokens) const = 0;
  // The token's text as the vocabulary spells it. Requires: the vocabulary has the token.
  virtual std::string_view piece(TokenId token) const = 0;
  // Requires: the scheme outlives the decoder.
  virtual std::unique_ptr<TextDecoder> decoder(SpecialTokens special) const = 0;
};

// What most kinds share.
class PlainScheme : public TokenScheme {
 public:
  explicit PlainScheme(const Vocabulary& vocabulary) : vocabulary_(vocabulary), around_(special_around(vocabulary)) {}

  std::vector<TokenId> with_special(std::vector<TokenId> tokens) const final {
    tokens.insert(tokens.begin(), around_.before.begin(), around_.before.end());
    tokens.insert(tokens.end(), around_.after.begin(), around_.after.end());
    return tokens;
  }
  std::string_view piece(TokenId token) const final { return vocabulary_.text(static_cast<std::size_t>(token)); }

 protected:
  const Vocabulary& vocabulary_;

 private:
  SpecialAround around_;
};

// Throws unsupported when a text must be normalized before it is cut into tokens.
void require_identity(const Vocabulary& vocabulary);

}  // namespace poise
