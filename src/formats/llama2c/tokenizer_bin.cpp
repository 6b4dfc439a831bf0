#include "formats/llama2c/tokenizer_bin.hpp"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "bytes/byte_reader.hpp"
#include "io/source_range.hpp"
#include "tokenizer/tokens/byte_piece.hpp"

namespace poise::llama2c {
namespace {

constexpr std::int32_t kUnknown = 0;
constexpr std::int32_t kBegin = 1;
constexpr std::int32_t kEnd = 2;
constexpr std::uint64_t kMaxTokenBytes = 1024;
constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581

// As in SentencePiece.
std::string text_of(std::uint64_t id, std::string_view text) {
  if (id == kUnknown) return "<unk>";
  if (id == kBegin) return "<s>";
  if (id == kEnd) return "</s>";
  std::string result;
  for (const char letter : text) {
    if (letter == ' ') {
      result += kSpace;
    } else {
      result += letter;
    }
  }
  return result;
}

TokenType type_of(std::uint64_t id, std::string_view text) {
  if (id == kUnknown) return TokenType::unknown;
  if (id == kBegin || id == kEnd) return TokenType::control;
  return byte_of_piece(text) ? TokenType::byte : TokenType::normal;
}

}  // namespace

Vocabulary read_tokenizer(const SourcePtr& source, std::uint64_t tokens) {
  const SourceRange range(*source);
  ByteReader reader(range, "tokenizer.bin");
  reader.u32("length of the longest token");
  if (tokens > reader.remaining() / 8)
    reader.fail("size", fmt::format("the file is cut off: {} tokens are not in {} bytes", tokens, source->size()),
                reader.position());
  Vocabulary vocabulary;
  vocabulary.bos_id = kBegin;
  vocabulary.eos_id = kEnd;
  vocabulary.unk_id = kUnknown;
  vocabulary.remove_extra_whitespaces = false;
  vocabulary.reserve(static_cast<std::size_t>(tokens), static_cast<std::size_t>(reader.remaining() - tokens * 8));
  for (std::uint64_t id = 0; id < tokens; ++id) {
    const auto scope = reader.scope("token", static_cast<std::int64_t>(id));
    const std::uint64_t at = reader.position();
    const float score = reader.f32("score");
    if (!std::isfinite(score)) reader.fail("score", fmt::format("{} is not a number", score), at);
    const std::uint64_t length_at = reader.position();
    const std::uint32_t length = reader.u32("length");
    if (length > kMaxTokenBytes)
      reader.fail("length", fmt::format("{} bytes, at most {} are read", length, kMaxTokenBytes), length_at);
    const std::string text = text_of(id, reader.text(length, "text"));
    vocabulary.add(text, score, type_of(id, text));
  }
  if (reader.remaining() > 0)
    reader.fail("size", fmt::format("{} bytes after the last of {} tokens", reader.remaining(), tokens),
                reader.position());
  return vocabulary;
}

}  // namespace poise::llama2c
