#include "tokenizer/sentencepiece_encoder.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/byte_piece.hpp"
#include "tokenizer/pipeline/fields.hpp"

namespace poise {
namespace {

// The pipeline's normalizer, which read_sentencepiece() puts there.
CharsMap charsmap_of(const Vocabulary& vocabulary) {
  const auto normalizer = Fields(vocabulary.pipeline, "").map("normalizer");
  if (!normalizer) return {};
  if (const std::string type = normalizer->required_text("type"); type != "Precompiled") throw_unknown_type(*normalizer, type);
  return CharsMap::from_base64(normalizer->required_text("precompiled_charsmap"));
}

}  // namespace

void PrefixMatcher::finish() {
  std::sort(sorted_.begin(), sorted_.end());
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
}

std::size_t PrefixMatcher::match(std::string_view text) const {
  std::size_t longest = 0;
  auto first = sorted_.begin();
  auto last = sorted_.end();
  for (std::size_t depth = 0; depth < text.size() && first != last; ++depth) {
    const auto byte = static_cast<unsigned char>(text[depth]);
    // In [first, last) all begin with text[0, depth); the one that ends there sorts first and is done.
    if (first->size() == depth) ++first;
    const auto at = [depth](std::string_view candidate) { return static_cast<unsigned char>(candidate[depth]); };
    first = std::partition_point(first, last, [&](std::string_view candidate) { return at(candidate) < byte; });
    last = std::partition_point(first, last, [&](std::string_view candidate) { return at(candidate) == byte; });
    if (first != last && first->size() == depth + 1) longest = depth + 1;
  }
  return longest;
}

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary)
    : SentencePieceScheme(vocabulary), charsmap_(charsmap_of(vocabulary)), pieces_(vocabulary), reserved_(vocabulary) {
  bytes_.fill(-1);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) add(static_cast<TokenId>(id));
  user_defined_.finish();
  byte_fallback_ = std::find(bytes_.begin(), bytes_.end(), -1) == bytes_.end();
}

std::vector<TokenId> SentencePieceEncoder::encode(std::string_view text) const {
  if (charsmap_.empty()) require_identity(vocabulary_);
  const std::string normalized = normalize(text);
  Output output(*this);
  if (!normalized.empty()) cut(normalized, output);
  return output.take();
}

void SentencePieceEncoder::Output::add(std::string_view piece, TokenId id) {
  const bool unknown = id == encoder_.vocabulary_.unk_id;
  if (unknown && encoder_.byte_fallback_) {
    for (const char byte : piece) tokens_.push_back(encoder_.bytes_[static_cast<unsigned char>(byte)]);
  } else if (unknown && id < 0) {
    throw Error(ErrorKind::unsupported, fmt::format("there is no token for \"{}\", and neither byte tokens nor an unknown token", piece));
  } else if (!unknown || !after_unknown_) {
    tokens_.push_back(id);
  }
  after_unknown_ = unknown;
}

TokenId SentencePieceEncoder::find(std::string_view piece) const {
  if (const auto found = reserved_.find(piece)) return *found;
  return pieces_.find(piece).value_or(vocabulary_.unk_id);
}

void SentencePieceEncoder::add(TokenId id) {
  const std::string_view text = vocabulary_.text(static_cast<std::size_t>(id));
  switch (type(id)) {
    case TokenType::user_defined: user_defined_.add(text); [[fallthrough]];
    case TokenType::normal:
    case TokenType::unused: pieces_.add(id); return;
    case TokenType::byte:
      if (TokenId& byte = bytes_[*byte_of_piece(text)]; byte < 0) byte = id;
      [[fallthrough]];
    case TokenType::control:
    case TokenType::unknown:
    case TokenType::bos:
    case TokenType::eos:
    case TokenType::pad: reserved_.add(id); return;
  }
}

SentencePieceEncoder::Chunk SentencePieceEncoder::first_chunk(std::string_view text) const {
  if (const std::size_t length = user_defined_.match(text); length > 0) return {length, text.substr(0, length)};
  if (const auto match = charsmap_.longest(text)) return {match->length, match->replacement};
  const std::size_t length = character_length(text);
  return length == 0 ? Chunk{1, kReplacementCharacter} : Chunk{length, text.substr(0, length)};
}

std::string SentencePieceEncoder::normalize(std::string_view text) const {
  std::string out;
  while (vocabulary_.remove_extra_whitespaces && !text.empty()) {
    const Chunk chunk = first_chunk(text);
    if (chunk.text != " ") break;
    text.remove_prefix(chunk.length);
  }
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 4);
  if (vocabulary_.add_dummy_prefix) out += kSpaceSymbol;
  bool after_space = vocabulary_.remove_extra_whitespaces;
  while (!text.empty()) {
    const Chunk chunk = first_chunk(text);
    append_chunk(chunk.text, after_space, out);
    text.remove_prefix(chunk.length);
  }
  while (vocabulary_.remove_extra_whitespaces && out.ends_with(kSpaceSymbol)) out.resize(out.size() - kSpaceSymbol.size());
  return out;
}

void SentencePieceEncoder::append_chunk(std::string_view chunk, bool& after_space, std::string& out) const {
  while (after_space && chunk.starts_with(' ')) chunk.remove_prefix(1);
  if (chunk.empty()) return;
  for (const char byte : chunk) {
    if (byte == ' ') {
      out += kSpaceSymbol;
    } else {
      out += byte;
    }
  }
  after_space = vocabulary_.remove_extra_whitespaces && chunk.ends_with(' ');
}

}  // namespace poise
