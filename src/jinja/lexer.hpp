// The lexer: a template's source as tokens, with trim_blocks and lstrip_blocks, as Hugging Face's library sets them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/failure.hpp"

namespace poise::jinja {

enum class TokenKind : unsigned char {
  data,
  variable_begin,  // {{
  variable_end,
  block_begin,  // {%
  block_end,
  name,
  string,
  integer,
  floating,
  symbol,  // an operator, or a bracket
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text = {};  // of a string: what it spells
  std::size_t line = 1;
};

inline constexpr std::size_t kMaxSource = std::size_t{1} << 20;  // bytes

// A syntax error, with its line.
struct SyntaxFailure : Failure {
  SyntaxFailure(const std::string& message, std::size_t line_) : Failure(FailureKind::syntax, message), line(line_) {}
  std::size_t line;
};

// The last token is `end`. Throws SyntaxFailure. Requires: UTF-8.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace poise::jinja
