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

// A control token that is BOS, EOS or padding by its id gets that type.
TokenType special_type(TokenType type, const Vocabulary& vocabulary, std::size_t id);

}  // namespace poise
