// SentencePiece's unigram vocabularies. Poise decodes with them and does not encode.
#include <poise/error.hpp>

#include "tokenizer/kinds.hpp"
#include "tokenizer/sentencepiece_decoder.hpp"

namespace poise {
namespace {

class SentencePieceUnigram final : public SentencePieceScheme {
 public:
  using SentencePieceScheme::SentencePieceScheme;

  std::vector<TokenId> encode(std::string_view) const override {
    throw Error(ErrorKind::unsupported, "text cannot be tokenized: the vocabulary is a SentencePiece unigram model, only bpe is supported");
  }
};

}  // namespace

std::unique_ptr<const TokenScheme> make_sentencepiece_unigram(const Vocabulary& vocabulary) { return std::make_unique<SentencePieceUnigram>(vocabulary); }

}  // namespace poise
