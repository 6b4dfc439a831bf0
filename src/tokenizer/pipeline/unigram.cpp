// Implements Unigram: cuts a piece into the tokens with the largest sum of scores.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/tokens/merge.hpp"
#include "tokenizer/tokens/token_index.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise {
namespace {

constexpr double kUnknownPenalty = 10;  // an unknown token's score is this much below the worst token's

class Unigram final : public PieceModel {
 public:
  Unigram(const Fields& fields, const ModelContext& context)
      : byte_fallback_(fields.read_boolean("byte_fallback", false)) {
    const Vocabulary& vocabulary = context.vocabulary;
    read_scores(fields, vocabulary);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t id = vocabulary.size(); id-- > 0;) {  // of tokens with the same text, the last one counts
      const std::string_view text = vocabulary.text(id);
      if (text.empty() || !context.ids.is_shown(static_cast<TokenId>(id))) continue;
      tokens_.add(text, static_cast<TokenId>(id));
      least = std::min(least, scores_[id]);
    }
    unknown_score_ = least - kUnknownPenalty;
    if (fields.find("unk_id") != nullptr) {
      const std::uint64_t id = fields.read_unsigned("unk_id", 0);
      if (id >= vocabulary.size())
        fields.fail("unk_id", fmt::format("{}, but the vocabulary has {} tokens", id, vocabulary.size()));
      unknown_ = static_cast<TokenId>(id);
    }
    bytes_.fill(-1);
    for (unsigned byte = 0; byte < 256 && byte_fallback_; ++byte)
      bytes_[byte] = find_token(fmt::format("<0x{:02X}>", byte));
  }

  std::unique_ptr<PieceEncoder> make_encoder() const override;

 private:
  class Encoder;

  // Reads the vocabulary's scores, or those of the field "scores", which is there if float32 cannot hold them.
  void read_scores(const Fields& fields, const Vocabulary& vocabulary) {
    for (std::size_t id = 0; id < vocabulary.size(); ++id) scores_.push_back(static_cast<double>(vocabulary.score(id)));
    const Value* value = fields.find("scores");
    if (value == nullptr) return;
    const auto* list = value->get_if<Value::Array>();
    if (list == nullptr || list->size() > vocabulary.size())
      fields.fail("scores", "expected a list with a number for each token");
    for (std::size_t id = 0; id < list->size(); ++id) {
      const auto* number = (*list)[id].get_if<double>();
      if (number == nullptr) fields.fail("scores", "expected numbers");
      scores_[id] = *number;
    }
  }

  // Returns the token with that text; -1 if there is none.
  TokenId find_token(std::string_view text) const {
    TokenId found = -1;
    tokens_.for_each_prefix(text, [&](std::size_t length, TokenId id) { found = length == text.size() ? id : found; });
    return found;
  }

  bool byte_fallback_;
  std::vector<double> scores_;
  PrefixTrie tokens_;
  double unknown_score_ = 0;
  TokenId unknown_ = -1;
  std::array<TokenId, 256> bytes_{};
};

class Unigram::Encoder final : public PieceEncoder {
 public:
  explicit Encoder(const Unigram& unigram) : of_(unigram) {}

  void encode(std::string_view piece, std::vector<TokenId>& tokens) override {
    const bool short_piece = piece.size() <= WordCache::kLongestWord;
    if (short_piece) {
      if (const auto known = cache_.find(piece); !known.empty()) {
        tokens.insert(tokens.end(), known.begin(), known.end());
        return;
      }
    }
    const std::size_t before = tokens.size();
    find_best_paths(piece);
    append_best_path(piece, tokens);
    if (short_piece) cache_.store(piece, std::span(tokens).subspan(before));
  }

 private:
  // Holds the best path to a place in the piece.
  struct Place {
    double score = 0;
    std::uint32_t from = UINT32_MAX;  // UINT32_MAX: no path reaches this place
    TokenId id = -1;
  };

  void find_best_paths(std::string_view piece) {
    if (piece.size() >= UINT32_MAX)
      throw Error(ErrorKind::unsupported,
                  fmt::format("a piece of the text has {} bytes, at most {} are encoded at once; divide the text",
                              piece.size(), UINT32_MAX - 1));
    places_.assign(piece.size() + 1, {});
    for (std::size_t at = 0; at < piece.size();) {
      EncodingStop::check();
      const double here = places_[at].score;
      const std::size_t character = unicode::decode(piece, at).bytes;
      bool alone = false;  // true if the character is a token by itself
      const auto consider_path = [&](std::size_t length, double score, TokenId id) {
        Place& place = places_[at + length];
        if (place.from == UINT32_MAX || here + score > place.score)
          place = {here + score, static_cast<std::uint32_t>(at), id};
      };
      of_.tokens_.for_each_prefix(piece.substr(at), [&](std::size_t length, TokenId id) {
        alone = alone || length == character;
        consider_path(length, of_.scores_[static_cast<std::size_t>(id)], id);
      });
      if (!alone) {
        if (of_.unknown_ < 0) {
          throw Error(ErrorKind::unsupported,
                      fmt::format("there is no token for \"{}\", and no unknown token", piece.substr(at, character)));
        }
        consider_path(character, of_.unknown_score_, of_.unknown_);
      }
      at += character;
    }
  }

  // Appends the tokens of the best path, which it follows from the end to the front. Joins runs of the unknown token.
  void append_best_path(std::string_view piece, std::vector<TokenId>& tokens) {
    cuts_.clear();
    for (std::size_t end = piece.size(); end > 0;) {
      const Place& place = places_[end];
      const std::size_t begin = place.from;
      if (place.id == of_.unknown_ && !cuts_.empty() && cuts_.back().id == of_.unknown_) {
        cuts_.back().begin = begin;
      } else {
        cuts_.push_back({begin, end, place.id});
      }
      end = begin;
    }
    for (auto cut = cuts_.rbegin(); cut != cuts_.rend(); ++cut)
      append_run(piece.substr(cut->begin, cut->end - cut->begin), cut->id, tokens);
  }

  // Appends the tokens of a run. A run of unknown characters may be a token as a whole.
  void append_run(std::string_view text, TokenId id, std::vector<TokenId>& tokens) const {
    if (id != of_.unknown_) return tokens.push_back(id);
    if (const TokenId found = of_.find_token(text); found >= 0) return tokens.push_back(found);
    const auto find_byte = [&](char byte) { return of_.bytes_[static_cast<unsigned char>(byte)]; };
    if (!of_.byte_fallback_ || std::ranges::any_of(text, [&](char byte) { return find_byte(byte) < 0; }))
      return tokens.push_back(id);
    for (const char byte : text) tokens.push_back(find_byte(byte));
  }

  struct Cut {
    std::size_t begin;
    std::size_t end;
    TokenId id;
  };

  const Unigram& of_;
  WordCache cache_;
  std::vector<Place> places_;
  std::vector<Cut> cuts_;
};

std::unique_ptr<PieceEncoder> Unigram::make_encoder() const { return std::make_unique<Encoder>(*this); }

}  // namespace

std::unique_ptr<const PieceModel> make_unigram(const Fields& fields, const ModelContext& context) {
  return std::make_unique<Unigram>(fields, context);
}

}  // namespace poise
