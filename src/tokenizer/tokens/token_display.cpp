#include "tokenizer/tokens/token_display.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/tokens/byte_piece.hpp"

namespace poise {
namespace {

TokenDisplay display_of(const Vocabulary& vocabulary, std::size_t id) {
  switch (vocabulary.type(id)) {
    case TokenType::control:
    case TokenType::bos:
    case TokenType::eos:
    case TokenType::pad: return TokenDisplay::invisible;
    case TokenType::unknown: return TokenDisplay::unknown;
    case TokenType::normal:
    case TokenType::unused:
    case TokenType::user_defined: return TokenDisplay::text;
    case TokenType::byte: break;
  }
  if (!byte_of_piece(vocabulary.text(id))) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("token {} is a byte token, but its text is \"{}\"; expected <0x00> to <0xFF>", id,
                            vocabulary.text(id)));
  }
  return TokenDisplay::byte;
}

}  // namespace

std::vector<TokenDisplay> token_displays(const Vocabulary& vocabulary) {
  std::vector<TokenDisplay> displays;
  displays.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) displays.push_back(display_of(vocabulary, id));
  return displays;
}

}  // namespace poise
