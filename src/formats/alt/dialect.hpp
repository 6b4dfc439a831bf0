// Dialect: recognizable differences of a file from the canonical form of ALT.
//
// Each is decided independently, while the section that it concerns is read. A reading counts only if the section then
// fits exactly: every field valid, section_size right by one of the rules, and a marker after the padding.
#pragma once

#include <cstdint>
#include <string_view>

#include <poise/model.hpp>

namespace poise::alt {

// What a section_size counts.
enum class SizeRule : std::uint8_t {
  whole,       // canonical: marker, size, fields and padding
  no_padding,  // marker, size and fields
  fields,      // alt.c
  too_small,   // alt.c, January 2025: the fields without the token ids
};

enum class ParameterOrder : std::uint8_t {
  canonical,  // ..., sliding_window, rope_theta, rms_norm_eps, initializer_range, head_size
  alt_c,      // ..., sliding_window, head_size, rms_norm_eps, rope_theta, initializer_range
};

enum class TokenRecord : std::uint8_t {
  canonical,  // text, score, type
  alt_c,      // score, type, id, text
};

enum class TypeNumbering : std::uint8_t {
  canonical,  // normal 0, byte 1, control 2, unknown 3, unused 4, bos 5, eos 6, pad 7, user_defined 8
  alt_c,      // normal 0, unknown 1, control 2, user_defined 3, byte 4, unused 5, bos 6, eos 7, pad 8
};

struct Dialect {
  bool sizes_of_alt_c = false;  // a section_size counts by SizeRule::fields or ::too_small
  ParameterOrder parameters = ParameterOrder::canonical;
  TokenRecord tokens = TokenRecord::canonical;
  bool seq_len = true;
  TypeNumbering types = TypeNumbering::canonical;
};

// The program that writes such files, or nothing.
std::string_view name(const Dialect& dialect);

// Codes are 0 to 8 in each numbering.
inline constexpr std::int32_t kMostTypeCode = 8;

// Requires: a code.
TokenType token_type(TypeNumbering numbering, std::int32_t code);
std::int32_t type_code(TypeNumbering numbering, TokenType type);

// The numbering of a vocabulary whose codes were read as canonical ones, by the names of the unknown token and <0x00>;
// `record` decides if neither does. `contradictory` when they disagree.
struct NumberingVerdict {
  TypeNumbering numbering = TypeNumbering::canonical;
  bool contradictory = false;
};
NumberingVerdict find_numbering(const Vocabulary& as_canonical, TokenRecord record);

}  // namespace poise::alt
