#include "tokenizer/sentencepiece_encoder.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/byte_piece.hpp"
#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/sentencepiece_normalizer.hpp"

namespace poise {
namespace {

// They are looked for in the text as it is: there is no other.
std::vector<AddedToken> added_to(const Vocabulary& vocabulary) {
  std::vector<AddedToken> added = read_added_tokens(Fields(vocabulary.pipeline, ""), vocabulary.size());
  for (AddedToken& token : added) token.normalized = false;
  return added;
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
    : SentencePieceScheme(vocabulary),
      charsmap_(normalizer_rules(vocabulary)),
      pieces_(vocabulary),
      reserved_(vocabulary),
      added_(added_to(vocabulary)),
      finder_(added_, false, nullptr) {
  bytes_.fill(-1);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) add(static_cast<TokenId>(id));
  user_defined_.finish();
}

std::vector<TokenId> SentencePieceEncoder::encode(std::string_view text) const {
  if (charsmap_.empty()) require_identity(vocabulary_);
  Output output(*this);
  if (added_.empty()) {
    encode_run(text, output);
  } else {
    finder_.for_each(text, [&](std::string_view run, TokenId id) { id < 0 ? encode_run(run, output) : output.add_whole(id); });
  }
  return output.take();
}

void SentencePieceEncoder::encode_run(std::string_view text, Output& output) const {
  const std::string normalized = normalize(text);
  if (!normalized.empty()) cut(normalized, output);
}

void SentencePieceEncoder::Output::add(std::string_view piece, TokenId id) {
  const bool unknown = id == encoder_.vocabulary_.unk_id;
  if (unknown && encoder_.has_bytes_of(piece)) {
    for (const char byte : piece) tokens_.push_back(encoder_.bytes_[static_cast<unsigned char>(byte)]);
  } else if (unknown && id < 0) {
    throw Error(ErrorKind::unsupported, fmt::format("there is no token for \"{}\", and neither byte tokens nor an unknown token", piece));
  } else if (!unknown || !after_unknown_) {
    tokens_.push_back(id);
  }
  after_unknown_ = unknown;
}

// SentencePiece's files have all bytes or none, others leave some out.
bool SentencePieceEncoder::has_bytes_of(std::string_view piece) const {
  return std::ranges::all_of(piece, [&](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; });
}

TokenId SentencePieceEncoder::find(std::string_view piece) const {
  if (const auto found = reserved_.find(piece)) return *found;
  return pieces_.find(piece).value_or(vocabulary_.unk_id);
}

void SentencePieceEncoder::add(TokenId id) {
  const std::string_view text = vocabulary_.text(static_cast<std::size_t>(id));
  if (is_piece(type(id))) {
    if (type(id) == TokenType::user_defined) user_defined_.add(text);
    pieces_.add(id);
    longest_piece_ = std::max(longest_piece_, text.size());
    return;
  }
  if (type(id) == TokenType::byte) {
    if (TokenId& byte = bytes_[*byte_of_piece(text)]; byte < 0) byte = id;
  }
  reserved_.add(id);
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
