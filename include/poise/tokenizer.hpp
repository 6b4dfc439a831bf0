// Tokenizer: converts text to token ids and back, as a model's vocabulary defines them.
//
//   const poise::Tokenizer tokenizer(*poise::read_vocabulary("tokenizer.json"));
//   const std::vector<poise::TokenId> ids = tokenizer.encode("Hello");
//   std::cout << tokenizer.decode(ids) << "\n";
//
// With SentencePiece vocabularies, ids and text equal those of the SentencePiece library, for any bytes: malformed
// UTF-8 reads as U+FFFD, characters without a token become byte tokens or the unknown token. In a plain text, the text
// of a control token ("<s>") becomes this token only if the vocabulary lists it as an added token. With vocabularies of
// tokenizer.json, ids and text equal those of Hugging Face's library, which finds the texts of all added tokens
// (docs/tokenizers.md). A const Tokenizer is thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/source.hpp>

namespace poise {

class TextDecoder;

// Returns the vocabulary in tokenizer files: one file (tokenizer.json, tokenizer.model, ...), or a directory with some
// of them. A config.json in the directory limits the tokens to its vocab_size. std::nullopt if there are no such files.
// Throws io, and invalid_file and unsupported for a file that is invalid or has unknown features.
std::optional<Vocabulary> read_vocabulary(const std::filesystem::path& path, IoMode io = IoMode::map);

using TokenId = std::int32_t;

// Chooses whether decoding shows BOS, EOS and other control tokens.
enum class SpecialTokens { hidden, shown };

// Holds the text that a chat template makes from messages, and marks the bytes that come from messages.
struct ChatText {
  std::string text;
  std::string from_messages = {};  // a byte for each byte of the text: 1 if it comes from a message; empty: none does
};

class Tokenizer {
 public:
  // Prepares the tables of a vocabulary. Throws invalid_file for an inconsistent one.
  explicit Tokenizer(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Returns the ids of a text, without BOS or EOS. O(n log n) in its bytes. Throws unsupported for normalizers of
  // SentencePiece that a vocabulary names but lacks, for a character without a token when there are neither byte tokens
  // nor an unknown token, and for a regular expression of the vocabulary that takes too long on this text.
  std::vector<TokenId> encode(std::string_view text) const;
  // Returns the same ids with special tokens around them: those of the vocabulary's post-processor. Without one, BOS
  // goes in front if the vocabulary has it, unless its kind is VocabularyKind::pipeline.
  std::vector<TokenId> encode_with_special(std::string_view text) const;

  // Returns the ids of a chat template's text. Finds special tokens where the template spells them, even if the
  // vocabulary lists no added tokens, and never in bytes from a message. Adds no special tokens around the text, since
  // the template spells them all. Throws what the other encode() throws, and bad_argument for marks of another length
  // than the text.
  std::vector<TokenId> encode(const ChatText& text) const;

  // Returns the text of ids, which is valid UTF-8 if the vocabulary's texts are. Removes the space that encode() puts
  // in front. Throws bad_argument for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> tokens, SpecialTokens special = SpecialTokens::hidden) const;

  // Returns a token in the vocabulary's spelling. Throws bad_argument for an id outside the vocabulary.
  std::string_view piece(TokenId token) const;

  const Vocabulary& vocabulary() const;

 private:
  friend class TextStream;
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

// Decodes token by token. The pieces concatenate to decode() of all tokens; each ends where a character ends. Requires:
// the tokenizer outlives the stream.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, SpecialTokens special = SpecialTokens::hidden);
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  // Adds a token, and returns the text that later tokens cannot change; it may be empty. Throws bad_argument for an id
  // outside the vocabulary.
  std::string add(TokenId token);
  // Returns the bytes held back so far. The stream then starts over.
  std::string finish();

 private:
  std::string release_text(std::size_t held_back);

  const Tokenizer::Tables* tables_;
  std::unique_ptr<TextDecoder> decoder_;
  std::string text_;  // decoded, not returned yet
};

}  // namespace poise
