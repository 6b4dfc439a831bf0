// Reads the tokenizer section.
//
//   version 2   i32 vocab_size, bos_id, eos_id, pad_id, unk_id, seq_len
//               per token: text, f32 score, i32 type
//   version 1   i32 vocab_size, bos_id, eos_id, pad_id, unk_id
//               per token: text
//
// The reader also accepts, in this order: version 2 without seq_len; version 2 with tokens as alt.c of January 2025
// writes them (f32 score, i32 type, i32 id, text), without and with seq_len; version 1 with section_size twice.
#include "formats/alt/sections.hpp"

#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "formats/alt/file_reader.hpp"
#include "model/limits.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::alt {
namespace {

struct ReadingV2 {
  TokenRecord record;
  bool seq_len;
};
constexpr std::array<ReadingV2, 4> kReadingsV2 = {{
    {TokenRecord::canonical, true},
    {TokenRecord::canonical, false},
    {TokenRecord::alt_c, false},
    {TokenRecord::alt_c, true},
}};

constexpr std::array kReadingsV1 = {false, true};  // true: the section's size appears twice

// Reads vocab_size and the special ids, and returns vocab_size. Throws invalid_file for more tokens than the remaining
// bytes can hold. `least_token_bytes` is the size of a token with an empty text.
std::int32_t read_size_and_ids(FileReader& reader, Vocabulary& vocabulary, std::uint64_t least_token_bytes) {
  ByteReader& bytes = reader.bytes();
  const std::uint64_t at = bytes.position();
  const std::int32_t size = reader.read_count32("vocab_size");
  vocabulary.bos_id = bytes.read_i32("bos_id");
  vocabulary.eos_id = bytes.read_i32("eos_id");
  vocabulary.pad_id = bytes.read_i32("pad_id");
  vocabulary.unk_id = bytes.read_i32("unk_id");
  if (static_cast<std::size_t>(size) > kMaxTokens)
    bytes.fail("vocab_size", fmt::format("{} tokens, at most {} are allowed", size, kMaxTokens), at);
  if (static_cast<std::uint64_t>(size) > bytes.remaining() / least_token_bytes) {
    bytes.fail("vocab_size",
               fmt::format("{} tokens need at least {} bytes each, {} bytes are left", size, least_token_bytes,
                           bytes.remaining()),
               at);
  }
  return size;
}

// Reads a type by the canonical numbering. If the tokens follow alt.c's numbering, correct_numbering() changes the type
// later.
TokenType read_token_type(ByteReader& bytes) {
  const std::uint64_t at = bytes.position();
  const std::int32_t code = bytes.read_i32("token_type");
  if (code < 0 || code > kMostTypeCode)
    bytes.fail("token_type", fmt::format("expected 0 to {}, found {}", kMostTypeCode, code), at);
  return decode_token_type(TypeNumbering::canonical, code);
}

float read_score(ByteReader& bytes) {
  const std::uint64_t at = bytes.position();
  const float score = bytes.read_f32("token_score");
  if (std::isnan(score)) bytes.fail("token_score", "expected a number, found NaN", at);
  return score;
}

void read_token(FileReader& reader, Vocabulary& vocabulary, TokenRecord record, std::int32_t id) {
  ByteReader& bytes = reader.bytes();
  if (record == TokenRecord::canonical) {
    const std::string text = reader.read_text("token_data");
    const float score = read_score(bytes);
    vocabulary.add(text, score, read_token_type(bytes));
    return;
  }
  const float score = read_score(bytes);
  const TokenType type = read_token_type(bytes);
  const std::uint64_t at = bytes.position();
  const std::int32_t found = bytes.read_i32("token_id");
  if (found != id) bytes.fail("token_id", fmt::format("expected {}, found {}", id, found), at);
  vocabulary.add(reader.read_text("token_data"), score, type);
}

void warn_of_other_form(FileReader& reader, const ReadingV2& reading, std::uint64_t begin) {
  const std::uint64_t tokens = begin + (reading.seq_len ? 24 : 20);
  if (!reading.seq_len) reader.warn("seq_len", "the field is missing", begin + 20);
  if (reading.record == TokenRecord::alt_c)
    reader.warn("token", "expected text, score, type; found score, type, id, text", tokens);
}

void correct_numbering(FileReader& reader, Vocabulary& vocabulary, TokenRecord record, std::uint64_t begin) {
  const NumberingVerdict verdict = find_numbering(vocabulary, record);
  if (verdict.contradictory)
    reader.warn("token_type", "the types of the unknown token and of <0x00> follow different numberings", begin);
  if (verdict.numbering == TypeNumbering::canonical) return;
  reader.warn("token_type", "numbered as by alt.c: unknown 1, user-defined 3, byte 4, unused 5, BOS 6, EOS 7, PAD 8",
              begin);
  reader.dialect().types = verdict.numbering;
  const auto convert_type = [&](std::size_t id) {
    return decode_token_type(verdict.numbering, encode_token_type(TypeNumbering::canonical, vocabulary.type(id)));
  };
  vocabulary = change_token_types(vocabulary, convert_type);
}

// Gives the tokens at bos_id, eos_id and pad_id the types of choose_token_type_by_id(), which writers store, so that
// vocabularies with the same tokens are equal. Warns of each change.
void correct_special_types(FileReader& reader, Vocabulary& vocabulary, std::uint64_t begin) {
  bool any = false;
  for (const std::int32_t special : std::set{vocabulary.bos_id, vocabulary.eos_id, vocabulary.pad_id}) {
    const auto id = static_cast<std::size_t>(special);
    if (special < 0 || id >= vocabulary.size() || choose_token_type_by_id(vocabulary, id) == vocabulary.type(id))
      continue;
    any = true;
    reader.warn("token_type",
                fmt::format("token {}: expected {}, found {}", id, to_string(choose_token_type_by_id(vocabulary, id)),
                            to_string(vocabulary.type(id))),
                begin);
  }
  if (any)
    vocabulary =
        change_token_types(vocabulary, [&](std::size_t id) { return choose_token_type_by_id(vocabulary, id); });
}

Vocabulary read_tokenizer_v2_as(const ReadingV2& reading, FileReader& reader, const OpenSection& section,
                                std::uint64_t& progress) {
  ByteReader& bytes = reader.bytes();
  const bool has_ids = reading.record == TokenRecord::alt_c;
  const std::uint64_t begin = bytes.position();
  Vocabulary vocabulary;
  const std::int32_t size = read_size_and_ids(reader, vocabulary, has_ids ? 16 : 12);
  const std::uint64_t seq_len_at = bytes.position();
  if (reading.seq_len) vocabulary.max_length = bytes.read_i32("seq_len");
  for (std::int32_t id = 0; id < size; ++id, ++progress) {
    const auto scope = bytes.open_scope("token", id);
    read_token(reader, vocabulary, reading.record, id);
  }
  ++progress;
  // This check comes after the tokens, so that they count as progress: of all readings' errors, try_readings() throws
  // that of the reading with the most progress.
  if (vocabulary.max_length < 0)
    bytes.fail("seq_len", fmt::format("expected 0 or more, found {}", vocabulary.max_length), seq_len_at);
  warn_of_other_form(reader, reading, begin);
  reader.close_section(section, has_ids ? 4 * static_cast<std::uint64_t>(size) : 0);
  reader.require_marker();
  reader.dialect().tokens = reading.record;
  reader.dialect().seq_len = reading.seq_len;
  correct_numbering(reader, vocabulary, reading.record, begin);
  correct_special_types(reader, vocabulary, begin);
  return vocabulary;
}

Vocabulary read_tokenizer_v1_as(bool is_size_twice, FileReader& reader, const OpenSection& section,
                                std::uint64_t& progress) {
  ByteReader& bytes = reader.bytes();
  if (is_size_twice) {
    const std::uint64_t at = bytes.position();
    const std::int64_t repeated_size = bytes.read_i64("header size");
    if (repeated_size != section.size)
      bytes.fail("header size",
                 fmt::format("expected the section's size {} again, found {}", section.size, repeated_size), at);
    reader.warn("header size", "the section's size appears twice", at);
  }
  Vocabulary vocabulary;
  const std::int32_t size = read_size_and_ids(reader, vocabulary, 4);
  for (std::int32_t id = 0; id < size; ++id, ++progress) {
    const auto scope = bytes.open_scope("token", id);
    const std::string text = reader.read_text("token_data");
    vocabulary.add(text, static_cast<float>(-id), guess_type(vocabulary, text, id));
  }
  ++progress;
  reader.close_section(section, is_size_twice ? 8 : 0);
  reader.require_marker();
  return vocabulary;
}

std::optional<Vocabulary> make_optional_vocabulary(Vocabulary vocabulary) {
  if (vocabulary == Vocabulary{}) return std::nullopt;
  return vocabulary;
}

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') && parse_hex_digit(text[3]) >= 0 &&
         parse_hex_digit(text[4]) >= 0;
}

}  // namespace

std::optional<Vocabulary> read_tokenizer_v2(FileReader& reader, const OpenSection& section) {
  return make_optional_vocabulary(try_readings(reader, std::span<const ReadingV2>(kReadingsV2),
                                               [&](const ReadingV2& reading, std::uint64_t& progress) {
                                                 return read_tokenizer_v2_as(reading, reader, section, progress);
                                               }));
}

std::optional<Vocabulary> read_tokenizer_v1(FileReader& reader, const OpenSection& section) {
  return make_optional_vocabulary(
      try_readings(reader, std::span<const bool>(kReadingsV1), [&](bool is_size_twice, std::uint64_t& progress) {
        return read_tokenizer_v1_as(is_size_twice, reader, section, progress);
      }));
}

TokenType guess_type(const Vocabulary& vocabulary, std::string_view text, std::int32_t id) {
  if (text == "<unk>" || id == vocabulary.unk_id) return TokenType::unknown;
  if (text == "<s>" || id == vocabulary.bos_id) return TokenType::bos;
  if (text == "</s>" || id == vocabulary.eos_id) return TokenType::eos;
  if (id == vocabulary.pad_id) return TokenType::pad;
  return is_byte_token(text) ? TokenType::byte : TokenType::normal;
}

float check_score(const Vocabulary& vocabulary, std::size_t id) {
  const float score = vocabulary.score(id);
  if (!std::isnan(score)) return score;
  throw Error(ErrorKind::unsupported, fmt::format("alt cannot hold the score of token {}, which is NaN", id));
}

}  // namespace poise::alt
