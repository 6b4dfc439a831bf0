// Tokenizer: text to token ids and back, as a model's vocabulary defines them.
//
// For SentencePiece vocabularies the ids and the text are those of the SentencePiece library, for any bytes: malformed
// UTF-8 reads as U+FFFD, characters without a token become byte tokens or the unknown token. The text of control tokens
// ("<s>") is matched in a prompt only where added tokens are listed. For vocabularies of tokenizer.json they are those
// of Hugging Face's library, which does find the texts of added tokens in a prompt (docs/tokenizers.md). A const
// Tokenizer is safe to use from many threads.
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

// The vocabulary in tokenizer files: one file (tokenizer.json, tokenizer.model, ...), or a directory that holds some.
// Nothing where there is none of them, whatever else there is. Throws io, and invalid_file and unsupported for a file
// that is none or holds what Poise does not know.
std::optional<Vocabulary> read_vocabulary(const std::filesystem::path& path, IoMode io = IoMode::map);

using TokenId = std::int32_t;

// What decoding makes of BOS, EOS and other control tokens.
enum class SpecialTokens { hidden, shown };

// What a chat template makes of messages: a text, and which of its bytes the messages brought.
struct ChatText {
  std::string text;
  std::string from_messages = {};  // empty: none; else a byte for each byte of the text, 1 for those
};

class Tokenizer {
 public:
  // Throws invalid_file when the vocabulary contradicts itself.
  explicit Tokenizer(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // The ids of a text, without BOS or EOS. O(n log n) in its bytes. Throws unsupported for normalizers of SentencePiece
  // that a vocabulary names and does not hold, for a character when there are neither byte tokens nor an
  // unknown token, and for a regular expression of the vocabulary that takes longer on this text than any should.
  std::vector<TokenId> encode(std::string_view text) const;
  // The same with the special tokens that belong around it: those of the vocabulary's post-processor, else BOS in front
  // where there is one.
  std::vector<TokenId> encode_with_special(std::string_view text) const;

  // The ids of a text that a chat template has made. Special tokens are found where the template spells them, also
  // those of a vocabulary that lists no added tokens; none is found that has a byte from a message. None is put around
  // the text: the template spells them all.
  std::vector<TokenId> encode(const ChatText& text) const;

  // The text of ids; valid UTF-8 if the vocabulary is. The space that encode() puts in front is taken away. Throws
  // bad_argument for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> tokens, SpecialTokens special = SpecialTokens::hidden) const;

  // A token as the vocabulary spells it. Throws bad_argument for an id outside the vocabulary.
  std::string_view piece(TokenId token) const;

  const Vocabulary& vocabulary() const;

 private:
  friend class TextStream;
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

// Decodes token by token. The pieces it returns, put together, are what decode() returns for all tokens, and each of
// them ends where a character ends. Requires: the tokenizer outlives the stream.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, SpecialTokens special = SpecialTokens::hidden);
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  // The text that is certain after this token; may be empty. Throws bad_argument for an id outside the vocabulary.
  std::string add(TokenId token);
  // What was held back. The stream then starts over.
  std::string finish();

 private:
  std::string take(std::size_t held_back);

  const Tokenizer::Tables* tables_;
  std::unique_ptr<TextDecoder> decoder_;
  std::string text_;  // decoded, not handed out yet
};

}  // namespace poise
