// Implements SentencePiece's unigram model of a normalized text (sentencepiece/encoder.hpp): finds the tokens with the
// largest sum of scores. Skips unused tokens, and prefers user-defined ones.
//
// Sums are kept as float32 and added as float64, as in SentencePiece (unigram_model.cc, EncodeOptimized), so that the
// same paths tie. The Unigram of pipelines is Hugging Face's, which keeps float64 and finds unknown tokens differently.
#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/sentencepiece/encoder.hpp"
#include "tokenizer/tokens/merge.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {
namespace {

constexpr float kUnknownPenalty = 10;  // an unknown character scores this much below the worst normal token

class SentencePieceUnigram final : public SentencePieceEncoder {
 public:
  explicit SentencePieceUnigram(const Vocabulary& vocabulary) : SentencePieceEncoder(vocabulary) {
    float least = std::numeric_limits<float>::max();
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      const auto token = static_cast<TokenId>(id);
      if (type(token) == TokenType::normal) {
        least = std::min(least, vocabulary.score(id));
        most_ = std::max(most_, vocabulary.score(id));
      }
      if (is_piece(type(token))) trie_.add(vocabulary.text(id), token);
    }
    unknown_score_ = least - kUnknownPenalty;
  }

 private:
  // Holds the score of the best path to a place in the text, and where the path's last token begins.
  struct Place {
    float score = 0;
    std::uint32_t from = kNotReached;
    TokenId id = -1;
  };
  static constexpr std::uint32_t kNotReached = UINT32_MAX;

  void append_pieces(std::string_view text, Output& output) const override {
    if (text.size() >= kNotReached)
      throw Error(ErrorKind::unsupported,
                  fmt::format("a piece of the text has {} bytes, at most {} are encoded at once; divide the text",
                              text.size(), kNotReached - 1));
    const std::vector<Place> places = find_best_paths(text);
    std::vector<std::uint32_t> ends;
    for (auto end = static_cast<std::uint32_t>(text.size()); end > 0; end = places[end].from) ends.push_back(end);
    std::uint32_t begin = 0;
    for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
      output.add(text.substr(begin, *end - begin), places[*end].id);
      begin = *end;
    }
  }

  std::vector<Place> find_best_paths(std::string_view text) const {
    std::vector<Place> places(text.size() + 1);
    for (std::size_t at = 0; at < text.size();) {
      EncodingStop::check();
      const float here = places[at].score;
      const auto consider_path = [&](std::size_t length, double score, TokenId id) {
        Place& place = places[at + length];
        const double sum = score + static_cast<double>(here);
        if (place.from == kNotReached || sum > static_cast<double>(place.score))
          place = {static_cast<float>(sum), static_cast<std::uint32_t>(at), id};
      };
      const std::size_t character = std::min(find_announced_length(text[at]), text.size() - at);
      bool alone = false;  // true if the character is a token by itself
      trie_.for_each_prefix(text.substr(at), [&](std::size_t length, TokenId id) {
        if (type(id) == TokenType::unused) return;
        alone = alone || length == character;
        consider_path(length, compute_score(id, length), id);
      });
      if (!alone) consider_unknown(places, at, character);
      at += character;
    }
    return places;
  }

  // Considers an unknown character as the next step of a path. Computes in float32 throughout, like SentencePiece.
  void consider_unknown(std::vector<Place>& places, std::size_t at, std::size_t character) const {
    Place& place = places[at + character];
    const float sum = unknown_score_ + places[at].score;
    if (place.from == kNotReached || sum > place.score)
      place = {sum, static_cast<std::uint32_t>(at), vocabulary_.unk_id};
  }

  double compute_score(TokenId id, std::size_t length) const {
    if (type(id) != TokenType::user_defined)
      return static_cast<double>(vocabulary_.score(static_cast<std::size_t>(id)));
    return static_cast<double>(static_cast<float>(length) * most_) - 0.1;
  }

  PrefixTrie trie_;
  // The largest score of normal tokens. If all are negative, it is the smallest positive normal float, as in
  // SentencePiece.
  float most_ = std::numeric_limits<float>::min();
  float unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<const TokenScheme> make_sentencepiece_unigram(const Vocabulary& vocabulary) {
  return std::make_unique<SentencePieceUnigram>(vocabulary);
}

}  // namespace poise
