// The lexer divides a template's source into tokens, with trim_blocks and lstrip_blocks, as Hugging Face's library sets
// them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "jinja/budget.hpp"

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
  symbol,  // an operator, a bracket, or punctuation
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text = {};  // for a string, its value
  std::size_t line = 1;
};

inline constexpr std::size_t kMaxSource = std::size_t{1} << 20;  // bytes

// Reports a syntax error. `line` counts from 1.
struct SyntaxFailure : Failure {
  SyntaxFailure(const std::string& message, std::size_t line_) : Failure(FailureKind::syntax, message), line(line_) {}
  std::size_t line;
};

// Returns the tokens; the last one is `end`. Throws SyntaxFailure. Requires: UTF-8.
std::vector<Token> tokenize(std::string_view source);

// Holds a template's tokens, and the parser's position in them.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& peek() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_symbol(std::string_view symbol) const { return is(TokenKind::symbol) && current().text == symbol; }
  bool is_name(std::string_view name) const { return is(TokenKind::name) && current().text == name; }
  bool is_any_name(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (is_name(name)) return true;
    }
    return false;
  }

  bool skip_symbol(std::string_view symbol) { return is_symbol(symbol) && (next(), true); }
  bool skip_name(std::string_view name) { return is_name(name) && (next(), true); }
  void expect_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol)) refuse(fmt::format("expected '{}', found {}", symbol, describe()));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) refuse(fmt::format("expected '{}', found {}", name, describe()));
  }
  Token expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) refuse(fmt::format("expected {}, found {}", what, describe()));
    return next();
  }

  std::string describe() const {
    switch (current().kind) {
      case TokenKind::end: return "the end of the template";
      case TokenKind::data: return "text";
      case TokenKind::variable_begin: return "'{{'";
      case TokenKind::variable_end: return "'}}'";
      case TokenKind::block_begin: return "'{%'";
      case TokenKind::block_end: return "'%}'";
      default: return fmt::format("'{}'", current().text);
    }
  }
  [[noreturn]] void refuse(const std::string& message) const { throw SyntaxFailure(message, current().line); }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

// Appends the text that a Python string literal spells between its quotes. Returns the problem; empty if there is none.
std::string unescape(std::string_view text, std::string& out);

}  // namespace poise::jinja
