#include "tokenizer/tokens/token_types.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr std::array kTypes = {TokenType::normal,       TokenType::unknown, TokenType::control,
                               TokenType::user_defined, TokenType::unused,  TokenType::byte};

}  // namespace

std::optional<TokenType> numbered_token_type(std::uint64_t number) {
  if (number < 1 || number > kTypes.size()) return std::nullopt;
  return kTypes[number - 1];
}

std::int32_t token_type_number(TokenType type) {
  if (type == TokenType::bos || type == TokenType::eos || type == TokenType::pad) type = TokenType::control;
  return static_cast<std::int32_t>(std::ranges::find(kTypes, type) - kTypes.begin()) + 1;
}

TokenType special_type(TokenType type, const Vocabulary& vocabulary, std::size_t id) {
  if (type != TokenType::control) return type;
  const auto is = [&](std::int32_t special) { return special >= 0 && static_cast<std::size_t>(special) == id; };
  return is(vocabulary.bos_id)   ? TokenType::bos
         : is(vocabulary.eos_id) ? TokenType::eos
         : is(vocabulary.pad_id) ? TokenType::pad
                                 : type;
}

}  // namespace poise
