#include <poise/tokenizer.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/byte_piece.hpp"
#include "tokenizer/encoder.hpp"
#include "tokenizer/token_index.hpp"

namespace poise {
namespace {

constexpr std::string_view kUnknownSurface = " \xe2\x81\x87 ";  // what SentencePiece prints for the unknown token

std::string with_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find(kSpaceSymbol); at != std::string_view::npos; at = text.find(kSpaceSymbol)) {
    out.append(text.substr(0, at)).append(" ");
    text.remove_prefix(at + kSpaceSymbol.size());
  }
  return out.append(text);
}

}  // namespace

struct Tokenizer::Tables {
  // How a token appears in text.
  enum class Surface : std::uint8_t { invisible, unknown, byte, text };

  explicit Tables(Vocabulary vocabulary_) : vocabulary(std::move(vocabulary_)) {
    check_id("bos_id", vocabulary.bos_id);
    check_id("eos_id", vocabulary.eos_id);
    check_id("pad_id", vocabulary.pad_id);
    check_id("unk_id", vocabulary.unk_id);
    // SentencePiece decodes ids by way of their text, and finds control, unknown and byte tokens first.
    TokenIndex reserved(vocabulary);
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      surfaces.push_back(surface(id));
      if (vocabulary.kind == VocabularyKind::byte_pair) continue;
      if (surfaces[id] != Surface::text) reserved.add(static_cast<TokenId>(id));
    }
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      if (const auto found = reserved.find(vocabulary.text(id))) surfaces[id] = surfaces[static_cast<std::size_t>(*found)];
    }
    if (vocabulary.kind == VocabularyKind::sentencepiece_bpe) encoder = make_sentencepiece_bpe(vocabulary);
    if (vocabulary.kind == VocabularyKind::byte_pair) encoder = make_byte_pair(vocabulary);
  }

  void check_id(std::string_view field, TokenId id) const {
    if (id >= -1 && id < static_cast<std::int64_t>(vocabulary.size())) return;
    throw Error(ErrorKind::invalid_file, fmt::format("{} is {}, but the vocabulary has {} tokens", field, id, vocabulary.size()));
  }

  Surface surface(std::size_t id) const {
    switch (vocabulary.type(id)) {
      case TokenType::control:
      case TokenType::bos:
      case TokenType::eos:
      case TokenType::pad: return Surface::invisible;
      case TokenType::unknown: return Surface::unknown;
      case TokenType::normal:
      case TokenType::unused:
      case TokenType::user_defined: return Surface::text;
      case TokenType::byte: break;
    }
    if (!byte_of_piece(vocabulary.text(id))) {
      throw Error(ErrorKind::invalid_file, fmt::format("token {} is a byte token, but its text is \"{}\"; expected <0x00> to <0xFF>", id, vocabulary.text(id)));
    }
    return Surface::byte;
  }

  std::size_t checked(TokenId token) const {
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary.size()) {
      throw Error(ErrorKind::bad_argument, fmt::format("token {} is not in the vocabulary, which has {} tokens", token, vocabulary.size()));
    }
    return static_cast<std::size_t>(token);
  }

  Vocabulary vocabulary;
  std::vector<Surface> surfaces;
  std::unique_ptr<Encoder> encoder;  // null: Poise cannot encode with this vocabulary
};

Tokenizer::Tokenizer(Vocabulary vocabulary) : tables_(std::make_unique<const Tables>(std::move(vocabulary))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

const Vocabulary& Tokenizer::vocabulary() const { return tables_->vocabulary; }

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  if (tables_->encoder == nullptr)
    throw Error(ErrorKind::unsupported, "text cannot be tokenized: the vocabulary is a SentencePiece unigram model, only bpe is supported");
  const std::string& normalizer = vocabulary().normalizer;
  if (!normalizer.empty() && normalizer != "identity") {
    throw Error(ErrorKind::unsupported, fmt::format("text cannot be tokenized: the vocabulary's normalizer is \"{}\", only identity is supported", normalizer));
  }
  return tables_->encoder->encode(text);
}

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  TextStream stream(*this);
  std::string text;
  for (const TokenId token : tokens) text += stream.add(token);
  return text += stream.finish();
}

TextStream::TextStream(const Tokenizer& tokenizer) : tables_(tokenizer.tables_.get()) {}

std::string TextStream::add(TokenId token) {
  append(token);
  return take(false);
}

std::string TextStream::finish() {
  append_bytes(true);
  std::string text = take(true);
  any_text_ = false;
  at_start_ = true;
  space_taken_ = false;
  return text;
}

void TextStream::append(TokenId token) {
  using Surface = Tokenizer::Tables::Surface;
  const Vocabulary& vocabulary = tables_->vocabulary;
  const std::size_t id = tables_->checked(token);
  std::string_view text = vocabulary.text(id);
  const Surface surface = tables_->surfaces[id];
  if (vocabulary.kind == VocabularyKind::byte_pair) {
    if (surface != Surface::invisible) text_ += text;
    return;
  }
  if (surface == Surface::byte) {
    bytes_ += static_cast<char>(*byte_of_piece(text));
    append_bytes(false);
    return;
  }
  append_bytes(true);
  if (space_taken_ || any_text_) at_start_ = false;
  space_taken_ = false;
  if (surface == Surface::invisible) return;
  if (surface == Surface::unknown) {
    text_ += kUnknownSurface;
    any_text_ = true;
    return;
  }
  // The space in front, which encode() put there, is no part of the text. Where superfluous spaces are removed, none of
  // those in front is.
  if (at_start_ && (vocabulary.add_dummy_prefix || vocabulary.remove_extra_whitespaces) && text.starts_with(kSpaceSymbol)) {
    text.remove_prefix(kSpaceSymbol.size());
    space_taken_ = !vocabulary.remove_extra_whitespaces;
  }
  any_text_ = any_text_ || !text.empty();
  text_ += with_spaces(text);
}

// Turns byte tokens into characters. `at_end`: no further byte follows.
void TextStream::append_bytes(bool at_end) {
  std::string_view rest = bytes_;
  while (!rest.empty() && (at_end || incomplete_tail(rest) < rest.size())) {
    const std::size_t length = character_length(rest);
    text_ += length == 0 ? kReplacementCharacter : rest.substr(0, length);
    rest.remove_prefix(std::max<std::size_t>(length, 1));
    any_text_ = true;
  }
  bytes_ = std::string(rest);
}

std::string TextStream::take(bool at_end) {
  const std::size_t held_back = at_end ? 0 : incomplete_tail(text_);
  std::string text = text_.substr(0, text_.size() - held_back);
  text_.erase(0, text.size());
  return text;
}

}  // namespace poise
