// The numbers of token types in SentencePiece and GGUF: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6
// byte.
#pragma once

#include <cstdint>
#include <optional>

#include <poise/model.hpp>

namespace poise {

// Nothing for other numbers.
std::optional<TokenType> numbered_token_type(std::uint64_t number);

// BOS, EOS and padding are control tokens.
std::int32_t token_type_number(TokenType type);

// A control token gets the type that the ids of the vocabulary give it: the first of BOS, EOS and padding, or control.
TokenType special_type(TokenType type, const Vocabulary& vocabulary, std::size_t id);

// As ALT has types: the token at an id of BOS, EOS or padding has the first of these types, whatever its own is, unless
// it is a byte or the unknown token.
TokenType type_by_id(const Vocabulary& vocabulary, std::size_t id);

// The same tokens with the types that `type_of` gives their ids.
template <typename TypeOf>
Vocabulary with_types(const Vocabulary& tokens, TypeOf&& type_of) {
  Vocabulary vocabulary(tokens.settings());
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary.add(tokens.text(id), tokens.score(id), type_of(id));
  return vocabulary;
}

}  // namespace poise
