#include "tokenizer/surface.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/byte_piece.hpp"

namespace poise {
namespace {

Surface surface_of(const Vocabulary& vocabulary, std::size_t id) {
  switch (vocabulary.type(id)) {
    case TokenType::control:
    case TokenType::bos:
    case TokenType::eos:
    case TokenType::pad: return Surface::invisible;
    case TokenType::unknown: return Surface::unknown;
    case TokenType::normal:
    case TokenType::unused:
    case TokenType::user_defined: return Surface::text;
    case TokenType::byte: break;
  }
  if (!byte_of_piece(vocabulary.text(id))) {
    throw Error(ErrorKind::invalid_file, fmt::format("token {} is a byte token, but its text is \"{}\"; expected <0x00> to <0xFF>", id, vocabulary.text(id)));
  }
  return Surface::byte;
}

}  // namespace

std::vector<Surface> surfaces_of(const Vocabulary& vocabulary) {
  std::vector<Surface> surfaces;
  surfaces.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) surfaces.push_back(surface_of(vocabulary, id));
  return surfaces;
}

}  // namespace poise
