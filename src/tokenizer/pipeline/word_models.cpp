// Implements WordPiece and WordLevel, which look up words in the vocabulary.

#include <poise/error.hpp>

#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/tokens/token_index.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise {
namespace {

// Encodes pieces with a model that needs no cache.
template <typename Model>
class WordEncoder final : public PieceEncoder {
 public:
  explicit WordEncoder(const Model& model) : model_(model) {}
  void encode(std::string_view piece, std::vector<TokenId>& tokens) override { model_.encode(piece, tokens); }

 private:
  const Model& model_;
};

// Finds the longest token at the beginning of a word, then the longest continuation, and so on. The whole word is
// unknown if a rest remains, or if it has more than most_characters_.
class WordPiece final : public PieceModel {
 public:
  WordPiece(const Fields& fields, const ModelContext& context)
      : prefix_(fields.read_text("continuing_subword_prefix", "##")),
        most_characters_(fields.read_unsigned("max_input_chars_per_word", 100)),
        unknown_(find_named_token(fields, "unk_token", fields.read_text("unk_token", "[UNK]"), context)) {
    for (std::size_t id = 0; id < context.vocabulary.size(); ++id) {
      if (context.ids.is_found(static_cast<TokenId>(id)))
        tokens_.add(context.vocabulary.text(id), static_cast<TokenId>(id));
    }
    inside_ = tokens_.walk(PrefixTrie::kRoot, prefix_);
  }

  std::unique_ptr<PieceEncoder> make_encoder() const override {
    return std::make_unique<WordEncoder<WordPiece>>(*this);
  }

  void encode(std::string_view piece, std::vector<TokenId>& tokens) const {
    std::uint64_t characters = 0;
    unicode::for_each_character(piece, [&](char32_t, std::string_view) { ++characters; });
    if (characters > most_characters_) return tokens.push_back(unknown_);
    const std::size_t before = tokens.size();
    bool first = true;
    while (!piece.empty()) {
      const auto match = first                          ? tokens_.find_longest(piece)
                         : inside_ == PrefixTrie::kNone ? PrefixTrie::Match{}
                                                        : tokens_.find_longest(piece, inside_);
      if (match.value < 0 || match.length == 0) {
        tokens.resize(before);
        return tokens.push_back(unknown_);
      }
      tokens.push_back(match.value);
      piece.remove_prefix(match.length);
      first = false;
    }
  }

 private:
  std::string prefix_;
  std::uint64_t most_characters_;
  TokenId unknown_;
  PrefixTrie tokens_;
  PrefixTrie::Node inside_ = PrefixTrie::kNone;  // where continuations begin
};

class WordLevel final : public PieceModel {
 public:
  WordLevel(const Fields& fields, const ModelContext& context) : ids_(context.ids) {
    if (const auto unknown = context.ids.find(fields.read_text("unk_token", "<unk>"))) unknown_ = *unknown;
  }

  std::unique_ptr<PieceEncoder> make_encoder() const override {
    return std::make_unique<WordEncoder<WordLevel>>(*this);
  }

  void encode(std::string_view piece, std::vector<TokenId>& tokens) const {
    const TokenId id = ids_.find(piece).value_or(unknown_);
    if (id < 0)
      throw Error(ErrorKind::unsupported, "a word of the text is not a token, and the vocabulary has no unknown token");
    tokens.push_back(id);
  }

 private:
  const TokenIndex& ids_;
  TokenId unknown_ = -1;
};

}  // namespace

std::unique_ptr<const PieceModel> make_word_piece(const Fields& fields, const ModelContext& context) {
  return std::make_unique<WordPiece>(fields, context);
}
std::unique_ptr<const PieceModel> make_word_level(const Fields& fields, const ModelContext& context) {
  return std::make_unique<WordLevel>(fields, context);
}

}  // namespace poise
