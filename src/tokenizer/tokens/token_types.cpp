#include "tokenizer/tokens/token_types.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr std::array kTypes = {TokenType::normal,       TokenType::unknown, TokenType::control,
                               TokenType::user_defined, TokenType::unused,  TokenType::byte};

bool is_control(TokenType type) {
  return type == TokenType::control || type == TokenType::bos || type == TokenType::eos || type == TokenType::pad;
}

std::optional<TokenType> role_of(const Vocabulary& vocabulary, std::size_t id) {
  const auto is = [&](std::int32_t special) { return special >= 0 && static_cast<std::size_t>(special) == id; };
  if (is(vocabulary.bos_id)) return TokenType::bos;
  if (is(vocabulary.eos_id)) return TokenType::eos;
  if (is(vocabulary.pad_id)) return TokenType::pad;
  return std::nullopt;
}

}  // namespace

std::optional<TokenType> numbered_token_type(std::uint64_t number) {
  if (number < 1 || number > kTypes.size()) return std::nullopt;
  return kTypes[number - 1];
}

std::int32_t token_type_number(TokenType type) {
  if (is_control(type)) type = TokenType::control;
  return static_cast<std::int32_t>(std::ranges::find(kTypes, type) - kTypes.begin()) + 1;
}

TokenType special_type(TokenType type, const Vocabulary& vocabulary, std::size_t id) {
  return is_control(type) ? role_of(vocabulary, id).value_or(TokenType::control) : type;
}

TokenType type_by_id(const Vocabulary& vocabulary, std::size_t id) {
  const TokenType type = vocabulary.type(id);
  if (type == TokenType::byte || type == TokenType::unknown) return type;
  return role_of(vocabulary, id).value_or(type);
}

}  // namespace poise
