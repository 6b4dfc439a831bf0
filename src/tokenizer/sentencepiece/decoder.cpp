// Implements SentencePiece's decoding, for all of its algorithms.
//
// Byte tokens become bytes, and each invalid byte becomes U+FFFD. U+2581 becomes a space. The decoder drops the space
// that encoding puts in front. A denormalizer, if the vocabulary has one, then changes the text.
#include "tokenizer/sentencepiece/encoder.hpp"

#include <algorithm>
#include <utility>

#include "bytes/utf8.hpp"
#include "tokenizer/tokens/byte_level.hpp"

namespace poise {
namespace {

constexpr std::string_view kUnknownText = " \xe2\x81\x87 ";  // SentencePiece prints this for the unknown token

void append_with_decoded_spaces(std::string_view text, std::string& out) {
  for (std::size_t at = text.find(kSpaceSymbol); at != std::string_view::npos; at = text.find(kSpaceSymbol)) {
    out.append(text.substr(0, at)).append(" ");
    text.remove_prefix(at + kSpaceSymbol.size());
  }
  out.append(text);
}

class SentencePieceDecoder final : public TextDecoder {
 public:
  SentencePieceDecoder(const Vocabulary& vocabulary, const std::vector<TokenDisplay>& displays, SpecialTokens special)
      : vocabulary_(vocabulary), displays_(displays), special_(special) {}

  void add(TokenId token, std::string& text) override {
    const auto id = static_cast<std::size_t>(token);
    const TokenDisplay display = displays_[id];
    if (display == TokenDisplay::byte) {
      bytes_ += static_cast<char>(*parse_byte_piece(vocabulary_.text(id)));
      append_bytes(false, text);
      return;
    }
    append_bytes(true, text);
    if (space_taken_ || any_text_) at_start_ = false;
    space_taken_ = false;
    if (display == TokenDisplay::invisible) {
      if (special_ == SpecialTokens::shown) {
        text += vocabulary_.text(id);
        // In vocabularies with a pipeline, the piece after a shown token keeps its space, as in Hugging Face's library.
        any_text_ = any_text_ || !vocabulary_.pipeline.empty();
      }
      return;
    }
    if (display == TokenDisplay::unknown) {
      text += kUnknownText;
      any_text_ = true;
      return;
    }
    append_piece(vocabulary_.text(id), text);
  }

  void finish(std::string& text) override {
    append_bytes(true, text);
    any_text_ = false;
    at_start_ = true;
    space_taken_ = false;
  }

 private:
  // Appends a piece. The first piece loses the space in front that encode() adds. If encoding removes superfluous
  // spaces, each piece loses a leading space, up to and including the first piece that has other text.
  void append_piece(std::string_view piece, std::string& text) {
    if (at_start_ && (vocabulary_.add_dummy_prefix || vocabulary_.remove_extra_whitespaces) &&
        piece.starts_with(kSpaceSymbol)) {
      piece.remove_prefix(kSpaceSymbol.size());
      space_taken_ = !vocabulary_.remove_extra_whitespaces;
    }
    any_text_ = any_text_ || !piece.empty();
    append_with_decoded_spaces(piece, text);
  }

  // Appends the characters of `bytes_`, and U+FFFD for invalid bytes. Keeps the bytes of an incomplete character,
  // unless no byte follows (`at_end`).
  void append_bytes(bool at_end, std::string& text) {
    std::string_view rest = bytes_;
    while (!rest.empty() && (at_end || measure_incomplete_tail(rest) < rest.size())) {
      const std::size_t length = measure_character(rest);
      text += length == 0 ? kReplacementCharacter : rest.substr(0, length);
      rest.remove_prefix(std::max<std::size_t>(length, 1));
      any_text_ = true;
    }
    bytes_ = std::string(rest);
  }

  const Vocabulary& vocabulary_;
  const std::vector<TokenDisplay>& displays_;
  SpecialTokens special_;
  std::string bytes_;         // the bytes of an incomplete character
  bool any_text_ = false;     // true if some text has been decoded
  bool at_start_ = true;      // true if the next token may lose its leading space
  bool space_taken_ = false;  // true if a piece has lost its leading space, and no other piece may lose one
};

// Changes the result of another decoder as a whole, because the replacement of a text may depend on the text after it.
class DenormalizingDecoder final : public TextDecoder {
 public:
  DenormalizingDecoder(std::unique_ptr<TextDecoder> decoder, const SentencePieceNormalizer& denormalizer)
      : decoder_(std::move(decoder)), denormalizer_(denormalizer) {}

  void add(TokenId token, std::string&) override { decoder_->add(token, held_); }
  void finish(std::string& text) override {
    decoder_->finish(held_);
    text += denormalizer_.normalize(held_);
    held_.clear();
  }

 private:
  std::unique_ptr<TextDecoder> decoder_;
  const SentencePieceNormalizer& denormalizer_;
  std::string held_;
};

}  // namespace

std::vector<TokenDisplay> find_sentencepiece_displays(const Vocabulary& vocabulary) {
  std::vector<TokenDisplay> displays = find_token_displays(vocabulary);
  // If the file lists the unknown token as an added token, it decodes to its text; if it is listed as special, only
  // where special tokens are shown.
  for (const AddedToken& token : read_added_tokens(Fields(vocabulary.pipeline, "tokenizer"), vocabulary.size())) {
    TokenDisplay& display = displays[static_cast<std::size_t>(token.id)];
    if (display == TokenDisplay::unknown) display = token.special ? TokenDisplay::invisible : TokenDisplay::text;
  }
  // SentencePiece decodes an id by a search for its text, which finds control, unknown and byte tokens first. So a
  // normal token with the text of such a token decodes like it.
  TokenIndex reserved(vocabulary);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (displays[id] != TokenDisplay::text) reserved.add(static_cast<TokenId>(id));
  }
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (const auto found = reserved.find(vocabulary.text(id)))
      displays[id] = displays[static_cast<std::size_t>(*found)];
  }
  return displays;
}

std::unique_ptr<TextDecoder> SentencePieceEncoder::make_decoder(SpecialTokens special) const {
  auto decoder = std::make_unique<SentencePieceDecoder>(vocabulary_, displays_, special);
  if (!denormalizer_) return decoder;
  return std::make_unique<DenormalizingDecoder>(std::move(decoder), *denormalizer_);
}

}  // namespace poise
