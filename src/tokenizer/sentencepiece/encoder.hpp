// What SentencePiece's algorithms share when they encode:
//
//   1. Normalize (normalizer.hpp): what the charsmap lists is replaced, the longest front first;
//      malformed bytes become U+FFFD, spaces U+2581, one more U+2581 goes in front; superfluous spaces are removed if
//      the vocabulary says so. User-defined tokens stay as they are.
//   2. Cut the text into pieces: the algorithm's part.
//   3. Pieces become tokens; what is none becomes its bytes, or the unknown token once for each run.
//
// Where the vocabulary lists added tokens, their texts are cut out first, and each run between them is a text of its
// own, but for the space in front where the vocabulary says that the first run alone gets one.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/added_tokens.hpp"
#include "tokenizer/sentencepiece/decoder.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

class SentencePieceEncoder : public SentencePieceScheme {
 public:
  // Throws invalid_file for a charsmap that is none.
  explicit SentencePieceEncoder(const Vocabulary& vocabulary);

  // Throws unsupported for a normalizer that the vocabulary only names.
  std::vector<TokenId> encode(std::string_view text) const final;
  std::vector<TokenId> encode_chat(std::string_view text, std::string_view input) const final;

 protected:
  // Collects ids; a run of unknown characters is one unknown token.
  class Output {
   public:
    explicit Output(const SentencePieceEncoder& encoder) : encoder_(encoder) {}
    // Throws unsupported for what is no token where the vocabulary has neither bytes nor an unknown token. The unknown
    // id: -1 or the token's.
    void add(std::string_view piece, TokenId id);
    // A token that was found as such.
    void add_whole(TokenId id) {
      tokens_.push_back(id);
      after_unknown_ = false;
    }
    std::vector<TokenId> take() { return std::move(tokens_); }

   private:
    const SentencePieceEncoder& encoder_;
    std::vector<TokenId> tokens_;
    bool after_unknown_ = false;
  };

  // Cuts a normalized text, which is not empty.
  virtual void cut(std::string_view normalized, Output& output) const = 0;

  // Tokens that the text may be cut into: normal, unused and user-defined ones.
  const TokenIndex& pieces() const { return pieces_; }
  static bool is_piece(TokenType type) {
    return type == TokenType::normal || type == TokenType::unused || type == TokenType::user_defined;
  }
  std::size_t longest_piece() const { return longest_piece_; }  // in bytes
  const PrefixTrie& user_defined() const { return user_defined_; }
  TokenType type(TokenId id) const { return vocabulary_.type(static_cast<std::size_t>(id)); }
  // As SentencePiece has it: names of control, unknown and byte tokens go first. The unknown token's for what is none.
  TokenId find(std::string_view piece) const;

 private:
  void add(TokenId id);
  std::vector<TokenId> encode_between(const AddedTokenFinder& finder, std::string_view text,
                                      std::string_view input) const;
  void encode_run(std::string_view text, bool first, Output& output) const;
  bool has_bytes_of(std::string_view piece) const;

  TokenIndex pieces_;
  TokenIndex reserved_;  // what is never matched in text
  std::size_t longest_piece_ = 0;
  std::vector<AddedToken> added_;
  AddedTokenFinder finder_;
  std::vector<AddedToken> spelled_;  // and control tokens, which chat templates spell
  AddedTokenFinder spelled_finder_;
  PrefixTrie user_defined_;
  SentencePieceNormalizer normalizer_;
  std::array<TokenId, 256> bytes_{};
};

}  // namespace poise
