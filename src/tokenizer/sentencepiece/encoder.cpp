#include "tokenizer/sentencepiece/encoder.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/tokens/byte_level.hpp"

namespace poise {
namespace {

// Reads added tokens. All are found in the raw text, because they are cut out before the normalization.
std::vector<AddedToken> read_raw_added_tokens(const Vocabulary& vocabulary) {
  std::vector<AddedToken> added = read_added_tokens(Fields(vocabulary.pipeline, "tokenizer"), vocabulary.size());
  for (AddedToken& token : added) token.normalized = false;
  return added;
}

// Adds control and unknown tokens, whose texts SentencePiece itself never finds.
std::vector<AddedToken> add_control_tokens(const Vocabulary& vocabulary, std::vector<AddedToken> tokens) {
  std::vector<bool> is_added(vocabulary.size());
  for (const AddedToken& token : tokens) is_added[static_cast<std::size_t>(token.id)] = true;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool is_spelled = is_control(type) || type == TokenType::unknown;
    const std::string text(vocabulary.text(id));
    if (!is_spelled || is_added[id] || text.empty() || text.size() > PrefixTrie::kLongest) continue;
    tokens.push_back({.id = static_cast<TokenId>(id), .content = text, .text = text, .special = true});
  }
  return tokens;
}

}  // namespace

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary)
    : TokenScheme(vocabulary),
      displays_(find_sentencepiece_displays(vocabulary)),
      pieces_(vocabulary),
      reserved_(vocabulary),
      added_(read_raw_added_tokens(vocabulary)),
      finder_(added_, false),
      spelled_(add_control_tokens(vocabulary, added_)),
      spelled_finder_(spelled_, false),
      normalizer_(read_normalizer_rules(vocabulary), &user_defined_) {
  if (const auto rules = read_denormalizer_rules(vocabulary)) denormalizer_.emplace(*rules, nullptr);
  bytes_.fill(-1);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) index_token(static_cast<TokenId>(id));
}

std::vector<TokenId> SentencePieceEncoder::encode(std::string_view text) const {
  if (!added_.empty()) return encode_runs(finder_, text, {});
  if (!normalizer_.has_replacements()) check_normalizer_has_rules(vocabulary_);
  Output output(*this);
  encode_run(text, true, output);
  return output.release_tokens();
}

std::vector<TokenId> SentencePieceEncoder::encode_chat(std::string_view text, std::string_view input) const {
  return encode_runs(spelled_finder_, text, input);
}

std::vector<TokenId> SentencePieceEncoder::encode_runs(const AddedTokenFinder& finder, std::string_view text,
                                                       std::string_view input) const {
  if (!normalizer_.has_replacements()) check_normalizer_has_rules(vocabulary_);
  Output output(*this);
  const auto add = [&](std::string_view run, TokenId id) {
    id < 0 ? encode_run(run, run.data() == text.data(), output) : output.add_token(id);
  };
  finder.for_each_run(text, add, input);
  return output.release_tokens();
}

void SentencePieceEncoder::encode_run(std::string_view text, bool first, Output& output) const {
  const std::string normalized = normalizer_.normalize(text, first);
  if (!normalized.empty()) append_pieces(normalized, output);
}

void SentencePieceEncoder::Output::add(std::string_view piece, TokenId id) {
  const bool unknown = id == encoder_.vocabulary_.unk_id;
  if (unknown && encoder_.has_byte_tokens(piece)) {
    for (const char byte : piece) tokens_.push_back(encoder_.bytes_[static_cast<unsigned char>(byte)]);
  } else if (unknown && id < 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("there is no token for \"{}\", and neither byte tokens nor an unknown token", piece));
  } else if (!unknown || !after_unknown_) {
    tokens_.push_back(id);
  }
  after_unknown_ = unknown;
}

// Returns true when all bytes of the piece have tokens. SentencePiece's files have 256 byte tokens or none.
bool SentencePieceEncoder::has_byte_tokens(std::string_view piece) const {
  return std::ranges::all_of(piece, [&](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; });
}

TokenId SentencePieceEncoder::find_piece(std::string_view piece) const {
  if (const auto found = reserved_.find(piece)) return *found;
  return pieces_.find(piece).value_or(vocabulary_.unk_id);
}

void SentencePieceEncoder::index_token(TokenId id) {
  const std::string_view text = vocabulary_.text(static_cast<std::size_t>(id));
  if (is_piece(type(id))) {
    if (type(id) == TokenType::user_defined && !text.empty()) user_defined_.add(text, id);
    pieces_.add(id);
    longest_piece_ = std::max(longest_piece_, text.size());
    return;
  }
  if (type(id) == TokenType::byte) {
    if (TokenId& byte = bytes_[*parse_byte_piece(text)]; byte < 0) byte = id;
  }
  reserved_.add(id);
}

}  // namespace poise
