#include <poise/tokenizer.hpp>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/kinds.hpp"

namespace poise {

struct Tokenizer::Tables {
  explicit Tables(Vocabulary vocabulary_) : vocabulary(std::move(vocabulary_)) {
    check_id("bos_id", vocabulary.bos_id);
    check_id("eos_id", vocabulary.eos_id);
    check_id("pad_id", vocabulary.pad_id);
    check_id("unk_id", vocabulary.unk_id);
    scheme = get_kind_row(vocabulary.kind).make(vocabulary);
  }

  void check_id(std::string_view field, TokenId id) const {
    if (id >= -1 && id < static_cast<std::int64_t>(vocabulary.size())) return;
    throw Error(ErrorKind::invalid_file,
                fmt::format("{} is {}, but the vocabulary has {} tokens", field, id, vocabulary.size()));
  }

  void check_token(TokenId token) const {
    if (token >= 0 && static_cast<std::size_t>(token) < vocabulary.size()) return;
    throw Error(ErrorKind::bad_argument,
                fmt::format("token {} is not in the vocabulary, which has {} tokens", token, vocabulary.size()));
  }

  Vocabulary vocabulary;
  std::unique_ptr<const TokenScheme> scheme;
};

Tokenizer::Tokenizer(Vocabulary vocabulary) : tables_(std::make_unique<const Tables>(std::move(vocabulary))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

const Vocabulary& Tokenizer::vocabulary() const { return tables_->vocabulary; }

std::vector<TokenId> Tokenizer::encode(std::string_view text) const { return tables_->scheme->encode(text); }

std::vector<TokenId> Tokenizer::encode_with_special(std::string_view text) const {
  return tables_->scheme->add_special(encode(text));
}

std::vector<TokenId> Tokenizer::encode(const ChatText& text) const {
  if (!text.from_messages.empty() && text.from_messages.size() != text.text.size())
    throw Error(ErrorKind::bad_argument, fmt::format("from_messages has {} bytes, expected {}, as many as the text",
                                                     text.from_messages.size(), text.text.size()));
  return tables_->scheme->encode_chat(text.text, text.from_messages);
}

std::string_view Tokenizer::piece(TokenId token) const {
  tables_->check_token(token);
  return tables_->scheme->piece(token);
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, SpecialTokens special) const {
  TextStream stream(*this, special);
  std::string text;
  for (const TokenId token : tokens) text += stream.add(token);
  return text += stream.finish();
}

TextStream::TextStream(const Tokenizer& tokenizer, SpecialTokens special)
    : tables_(tokenizer.tables_.get()), decoder_(tables_->scheme->make_decoder(special)) {}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;

std::string TextStream::add(TokenId token) {
  tables_->check_token(token);
  decoder_->add(token, text_);
  return release_text(measure_incomplete_tail(text_));
}

std::string TextStream::finish() {
  decoder_->finish(text_);
  return release_text(0);
}

std::string TextStream::release_text(std::size_t held_back) {
  std::string text = text_.substr(0, text_.size() - held_back);
  text_.erase(0, text.size());
  return text;
}

}  // namespace poise
