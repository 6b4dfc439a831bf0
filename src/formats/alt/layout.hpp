// Describes the layout that both versions of ALT share ("File Layout" of their specifications).
//
// A file is a start marker, sections, and an end marker; each begins on a multiple of 32 bytes, after zero padding:
//
//   version 2   start | general | parameters | tokenizer | tensors | end
//   version 1   start           | parameters | tokenizer | tensors | end
//
//   section     i64 marker, i64 section_size (of the whole section: marker, size, fields and padding), fields, padding
//   text        i32 length in bytes, that many bytes of UTF-8
//
// The reader of each section lists its fields: parameters.cpp, tokens.cpp, tensors.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <poise/model.hpp>

#include "formats/spellings.hpp"

namespace poise::alt {

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint64_t kHeaderBytes = 16;  // the marker and the size of a section

constexpr std::int64_t kStartV2 = 0x616C7400;
constexpr std::int64_t kStartAltc = 0x616C7463;  // "altc": version 1, and some files of version 2
constexpr std::int64_t kEndMarker = 0x0FFFFFFF;

// Names the sections in file order.
enum class Section { general, parameters, tokenizer, tensors };

struct SectionInfo {
  std::string_view name;
  std::int64_t marker;
};

constexpr std::array<SectionInfo, 4> kSections = {{
    {"general", 0xCAFEBABE},
    {"parameters", 0xDEADBEEF},
    {"tokenizer", 0xBADDCAFE},
    {"tensors", 0xFACEFEED},
}};

constexpr const SectionInfo& get_section_info(Section section) { return kSections[static_cast<std::size_t>(section)]; }

// Lists version 2's codes of data_type; bf16 is an extension. Version 1 has the same codes for f32 and f16.
inline constexpr std::array kCodes = {
    Spelling<std::int32_t>{DType::f32, 0},   Spelling<std::int32_t>{DType::f16, 1},
    Spelling<std::int32_t>{DType::bf16, 4},  Spelling<std::int32_t>{DType::qint8, 2},
    Spelling<std::int32_t>{DType::qint4, 3},
};

// A dialect is a set of differences of a file from the canonical form of ALT.
//
// A reader detects each difference separately, while it reads the section. An interpretation counts only if the section
// then fits exactly: every field is valid, section_size is right by one of the rules, and a marker follows the padding.

// Names the bytes that a section_size counts.
enum class SizeRule : std::uint8_t {
  whole,       // canonical: marker, size, fields and padding
  no_padding,  // marker, size and fields
  fields,      // alt.c: only the fields
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
  bool sizes_of_alt_c = false;  // the size of a section follows SizeRule::fields or SizeRule::too_small
  ParameterOrder parameters = ParameterOrder::canonical;
  TokenRecord tokens = TokenRecord::canonical;
  bool seq_len = true;
  TypeNumbering types = TypeNumbering::canonical;
};

// Returns the name of the program that writes such files; empty if no such program is known.
std::string_view find_program_name(const Dialect& dialect);

// Codes are 0 to 8 in each numbering.
inline constexpr std::int32_t kMostTypeCode = 8;

// Each function converts between a token's type and its code in a numbering. Requires: 0 <= code <= kMostTypeCode.
TokenType decode_token_type(TypeNumbering numbering, std::int32_t code);
std::int32_t encode_token_type(TypeNumbering numbering, TokenType type);

// Holds the numbering of a file's token types. The types of the unknown token and of <0x00> decide it, or else the form
// of the token records. `contradictory` is true if the two tokens disagree; the numbering is then canonical.
struct NumberingVerdict {
  TypeNumbering numbering = TypeNumbering::canonical;
  bool contradictory = false;
};
// Requires: the types of `as_canonical` were decoded with the canonical numbering.
NumberingVerdict find_numbering(const Vocabulary& as_canonical, TokenRecord record);

}  // namespace poise::alt
