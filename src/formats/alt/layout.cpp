#include "formats/alt/layout.hpp"

#include <algorithm>
#include <optional>

namespace poise::alt {
namespace {

// Lists token types in the order of their codes.
using TypesByCode = std::array<TokenType, kMostTypeCode + 1>;
// Lists the types in the section "Token Types" of version 2's specification. user_defined comes last, because it has no
// code there.
constexpr TypesByCode kCanonicalTypes = {TokenType::normal,  TokenType::byte,   TokenType::control,
                                         TokenType::unknown, TokenType::unused, TokenType::bos,
                                         TokenType::eos,     TokenType::pad,    TokenType::user_defined};
constexpr TypesByCode kAltCTypes = {TokenType::normal,       TokenType::unknown, TokenType::control,
                                    TokenType::user_defined, TokenType::byte,    TokenType::unused,
                                    TokenType::bos,          TokenType::eos,     TokenType::pad};

const TypesByCode& get_types_by_code(TypeNumbering numbering) {
  return numbering == TypeNumbering::canonical ? kCanonicalTypes : kAltCTypes;
}

// Returns the numbering in which the code of the token at `id` means `type`; std::nullopt if it does in neither.
std::optional<TypeNumbering> infer_numbering(const Vocabulary& vocabulary, std::size_t id, TokenType type) {
  const std::int32_t code = encode_token_type(TypeNumbering::canonical, vocabulary.type(id));
  if (code == encode_token_type(TypeNumbering::canonical, type)) return TypeNumbering::canonical;
  if (code == encode_token_type(TypeNumbering::alt_c, type)) return TypeNumbering::alt_c;
  return std::nullopt;
}

std::optional<TypeNumbering> infer_numbering_from_unknown_token(const Vocabulary& vocabulary) {
  if (vocabulary.unk_id < 0 || static_cast<std::size_t>(vocabulary.unk_id) >= vocabulary.size()) return std::nullopt;
  return infer_numbering(vocabulary, static_cast<std::size_t>(vocabulary.unk_id), TokenType::unknown);
}

std::optional<TypeNumbering> infer_numbering_from_byte_token(const Vocabulary& vocabulary) {
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.text(id) == "<0x00>") return infer_numbering(vocabulary, id, TokenType::byte);
  }
  return std::nullopt;
}

}  // namespace

std::string_view find_program_name(const Dialect& dialect) {
  if (dialect.tokens == TokenRecord::alt_c) return "alt.c, January 2025";
  if (dialect.sizes_of_alt_c && !dialect.seq_len) return "alt.c, December 2024";
  if (dialect.sizes_of_alt_c || dialect.parameters == ParameterOrder::alt_c) return "alt.c";
  return {};
}

TokenType decode_token_type(TypeNumbering numbering, std::int32_t code) {
  return get_types_by_code(numbering)[static_cast<std::size_t>(code)];
}

std::int32_t encode_token_type(TypeNumbering numbering, TokenType type) {
  const TypesByCode& types = get_types_by_code(numbering);
  return static_cast<std::int32_t>(std::ranges::find(types, type) - types.begin());
}

NumberingVerdict find_numbering(const Vocabulary& as_canonical, TokenRecord record) {
  const auto unknown = infer_numbering_from_unknown_token(as_canonical);
  const auto byte = infer_numbering_from_byte_token(as_canonical);
  if (unknown && byte && unknown != byte) return {TypeNumbering::canonical, true};
  if (unknown || byte) return {unknown ? *unknown : *byte, false};
  return {record == TokenRecord::alt_c ? TypeNumbering::alt_c : TypeNumbering::canonical, false};
}

}  // namespace poise::alt
