// Tokenizer: text to token ids and back, as a model's vocabulary says.
//
// For SentencePiece vocabularies the ids and the text are those of the SentencePiece library, for any bytes: malformed
// UTF-8 reads as U+FFFD, characters without a token become byte tokens or the unknown token. The text of control tokens
// ("<s>") is never matched in a prompt. A const Tokenizer is safe to use from many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

class TextDecoder;

using TokenId = std::int32_t;

class Tokenizer {
 public:
  // Throws invalid_file when the vocabulary contradicts itself.
  explicit Tokenizer(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // The ids of a text, without BOS or EOS. O(n log n) in its bytes. Throws unsupported for unigram vocabularies, for
  // normalizers other than identity, and for a character when there are neither byte tokens nor an unknown token.
  std::vector<TokenId> encode(std::string_view text) const;

  // The text of ids; valid UTF-8 if the vocabulary is. Control tokens are invisible, the space that encode() puts in
  // front is taken away. Throws bad_argument for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> tokens) const;

  const Vocabulary& vocabulary() const;

 private:
  friend class TextStream;
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

// Decodes token by token. The pieces it returns, put together, are what decode() returns for all tokens, and each of them
// ends where a character ends. Requires: the tokenizer outlives the stream.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer);
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  // The text that is certain after this token; may be empty. Throws bad_argument for an id outside the vocabulary.
  std::string add(TokenId token);
  // What was held back. The stream then starts anew.
  std::string finish();

 private:
  std::string take(std::size_t held_back);

  const Tokenizer::Tables* tables_;
  std::unique_ptr<TextDecoder> decoder_;
  std::string text_;  // decoded, not handed out yet
};

}  // namespace poise
