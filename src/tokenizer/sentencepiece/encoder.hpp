// Implements the part of the encoding that SentencePiece's algorithms share:
//
//   1. Normalize (normalizer.hpp). The charsmap replaces texts, at each place the longest that it has. Malformed bytes
//      become U+FFFD, and spaces become U+2581. The vocabulary may ask to remove superfluous spaces, and to add one
//      U+2581 in front. User-defined tokens stay as they are.
//   2. Cut the text into pieces. The derived classes do this.
//   3. A piece becomes its token, or else the tokens of its bytes. A run of other pieces becomes one unknown token.
//
// If the vocabulary lists added tokens, the encoder cuts out their texts first. Each run between them is a separate
// text, but the vocabulary may ask for a space in front of the first run only.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/pipeline/added_tokens.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/token_index.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {

// Returns how SentencePiece decodes each token.
std::vector<TokenDisplay> find_sentencepiece_displays(const Vocabulary& vocabulary);

class SentencePieceEncoder : public TokenScheme {
 public:
  // Throws what read_normalizer_rules() and read_added_tokens() throw, and invalid_file for an invalid charsmap or byte
  // token.
  explicit SentencePieceEncoder(const Vocabulary& vocabulary);

  // Throws unsupported if the vocabulary names a normalizer without its rules, and for text that its tokens cannot
  // represent.
  std::vector<TokenId> encode(std::string_view text) const final;
  std::vector<TokenId> encode_chat(std::string_view text, std::string_view input) const final;
  std::unique_ptr<TextDecoder> make_decoder(SpecialTokens special) const final;

 protected:
  // Collects ids; a run of unknown characters is one unknown token.
  class Output {
   public:
    explicit Output(const SentencePieceEncoder& encoder) : encoder_(encoder) {}
    // Adds a piece, which has the token `id`; an unknown piece has the vocabulary's unk_id, perhaps -1. Throws
    // unsupported for an unknown piece if the vocabulary has neither the tokens of its bytes nor an unknown token.
    void add(std::string_view piece, TokenId id);
    // Adds a token that was found in the text.
    void add_token(TokenId id) {
      tokens_.push_back(id);
      after_unknown_ = false;
    }
    std::vector<TokenId> release_tokens() { return std::move(tokens_); }

   private:
    const SentencePieceEncoder& encoder_;
    std::vector<TokenId> tokens_;
    bool after_unknown_ = false;
  };

  // Cuts a normalized, non-empty text, and adds its pieces to the output.
  virtual void append_pieces(std::string_view normalized, Output& output) const = 0;

  // Returns the index of normal, unused and user-defined tokens, whose texts stand for themselves.
  const TokenIndex& pieces() const { return pieces_; }
  static bool is_piece(TokenType type) {
    return type == TokenType::normal || type == TokenType::unused || type == TokenType::user_defined;
  }
  std::size_t longest_piece() const { return longest_piece_; }  // in bytes
  const PrefixTrie& user_defined() const { return user_defined_; }
  TokenType type(TokenId id) const { return vocabulary_.type(static_cast<std::size_t>(id)); }
  // Returns the token with the text `piece`, or unk_id if there is none. As in SentencePiece, control, unknown and byte
  // tokens take precedence over other tokens with the same text.
  TokenId find_piece(std::string_view piece) const;

 private:
  void index_token(TokenId id);
  std::vector<TokenId> encode_runs(const AddedTokenFinder& finder, std::string_view text, std::string_view input) const;
  void encode_run(std::string_view text, bool first, Output& output) const;
  bool has_byte_tokens(std::string_view piece) const;

  std::vector<TokenDisplay> displays_;
  std::optional<SentencePieceNormalizer> denormalizer_;
  TokenIndex pieces_;
  TokenIndex reserved_;  // control, unknown and byte tokens, which take precedence over `pieces_`
  std::size_t longest_piece_ = 0;
  std::vector<AddedToken> added_;
  AddedTokenFinder finder_;
  std::vector<AddedToken> spelled_;  // added_, and control and unknown tokens, whose texts chat templates use
  AddedTokenFinder spelled_finder_;
  PrefixTrie user_defined_;
  SentencePieceNormalizer normalizer_;
  std::array<TokenId, 256> bytes_{};
};

}  // namespace poise
