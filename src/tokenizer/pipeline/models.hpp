// Declares models, which encode the pieces of a text as token ids.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <xxhash.h>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

// Encodes pieces with a model. An encoder has its own caches, so each thread needs its own encoder.
class PieceEncoder {
 public:
  virtual ~PieceEncoder() = default;
  // Appends the piece's ids. Requires: well-formed UTF-8 that is not empty.
  virtual void encode(std::string_view piece, std::vector<TokenId>& tokens) = 0;
};

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Requires: this outlives the encoder.
  virtual std::unique_ptr<PieceEncoder> make_encoder() const = 0;
};

// Holds the input of the functions that make models.
struct ModelContext {
  const Vocabulary& vocabulary;
  const TokenIndex& ids;  // the tokens of the model
};

// Indexes all tokens of a vocabulary except those in the model's field "added_only": tokens that only "added_tokens"
// lists. Throws invalid_file if this field is not a list of ids. Requires: the vocabulary outlives the index.
TokenIndex index_model_tokens(const Vocabulary& vocabulary);

// Makes the model of the field "type"; models.cpp has a row for each type. Throws invalid_file and unsupported.
// Requires: the parts of the context outlive the model.
std::unique_ptr<const PieceModel> make_piece_model(const Fields& fields, const ModelContext& context);

std::unique_ptr<const PieceModel> make_bpe(const Fields& fields, const ModelContext& context);
std::unique_ptr<const PieceModel> make_unigram(const Fields& fields, const ModelContext& context);
std::unique_ptr<const PieceModel> make_word_piece(const Fields& fields, const ModelContext& context);
std::unique_ptr<const PieceModel> make_word_level(const Fields& fields, const ModelContext& context);

// Returns the id of `text`, the token that the field `key` names. Throws invalid_file if the vocabulary lacks it.
TokenId find_named_token(const Fields& fields, std::string_view key, std::string_view text,
                         const ModelContext& context);

// Decodes one text, token by token.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;

  // Appends the text of the token, but may hold some of it back until the next tokens. Requires: the vocabulary has the
  // token.
  virtual void add(TokenId token, std::string& text) = 0;
  // Appends the text that add() has held back. The decoder then starts over.
  virtual void finish(std::string& text) = 0;
};

// Encodes and decodes texts with one kind of vocabulary; kinds.cpp has a row for each kind.
class TokenScheme {
 public:
  // Requires: the vocabulary outlives this.
  explicit TokenScheme(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), around_(find_special_around(vocabulary)) {}
  virtual ~TokenScheme() = default;

  // Implements Tokenizer::encode().
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;
  // Implements Tokenizer::encode(ChatText). Kinds that never find special tokens in texts encode the text like any
  // other.
  virtual std::vector<TokenId> encode_chat(std::string_view text, std::string_view) const { return encode(text); }
  // Adds the special tokens around a text's tokens (special_around.hpp).
  std::vector<TokenId> add_special(std::vector<TokenId> tokens) const {
    tokens.insert(tokens.begin(), around_.before.begin(), around_.before.end());
    tokens.insert(tokens.end(), around_.after.begin(), around_.after.end());
    return tokens;
  }
  // Returns the token's text as the vocabulary spells it. Requires: the vocabulary has the token.
  virtual std::string_view piece(TokenId token) const { return vocabulary_.text(static_cast<std::size_t>(token)); }
  // Requires: the scheme outlives the decoder.
  virtual std::unique_ptr<TextDecoder> make_decoder(SpecialTokens special) const = 0;

 protected:
  const Vocabulary& vocabulary_;

 private:
  SpecialAround around_;
};

// Throws unsupported if the vocabulary names a normalizer other than "identity". Requires: the vocabulary does not have
// the normalizer's rules.
void check_normalizer_has_rules(const Vocabulary& vocabulary);

// Caches the tokens of recent pieces. Its memory is bounded: a new word replaces the one in its slot, and a full cache
// drops all words.
class WordCache {
 public:
  static constexpr std::size_t kLongestWord = 128;

  // Returns the tokens of a word; empty if unknown.
  std::span<const TokenId> find(std::string_view word) {
    hash_ = XXH3_64bits(word.data(), word.size());
    if (slots_.empty()) return {};
    const Slot& slot = slots_[hash_ & (kSlots - 1)];
    if (slot.hash != hash_ || slot.bytes != word.size() ||
        std::memcmp(text_.data() + slot.text, word.data(), word.size()) != 0)
      return {};
    return {ids_.data() + slot.ids, slot.count};
  }

  // Stores the tokens of the word that find() was last called with, if there are at most kMostTokens of them. Requires:
  // at most kLongestWord bytes.
  void store(std::string_view word, std::span<const TokenId> tokens) {
    if (tokens.empty() || tokens.size() > kMostTokens) return;
    if (slots_.empty() || text_.size() + word.size() > kMaxText || ids_.size() + tokens.size() > kMaxText) {
      slots_.assign(kSlots, {});
      text_.clear();
      ids_.clear();
    }
    slots_[hash_ & (kSlots - 1)] = {hash_, static_cast<std::uint32_t>(text_.size()),
                                    static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(word.size()),
                                    static_cast<std::uint16_t>(tokens.size())};
    text_.insert(text_.end(), word.begin(), word.end());
    ids_.insert(ids_.end(), tokens.begin(), tokens.end());
  }

 private:
  static constexpr std::size_t kSlots = 1 << 15;
  static constexpr std::size_t kMaxText = 2 << 20;
  static constexpr std::size_t kMostTokens = 512;  // affixes of words may add many tokens of bytes

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t text = 0;
    std::uint32_t ids = 0;
    std::uint16_t bytes = 0;
    std::uint16_t count = 0;
  };
  std::vector<Slot> slots_;
  std::vector<char> text_;
  std::vector<TokenId> ids_;
  std::uint64_t hash_ = 0;
};

}  // namespace poise
