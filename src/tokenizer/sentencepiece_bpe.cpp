// Implements SentencePiece's byte pair encoding of a normalized text (sentencepiece/encoder.hpp), step by step:
//
//   1. Cut into characters. But user-defined tokens stay whole, the longest first, and never merge.
//   2. Merge neighbours whose concatenation is a token, the highest score first. Unused tokens take part, too.
//   3. Split each remaining unused token into the last two neighbours that step 2 found for it, recursively.
//
// Before step 1, a text is cut at boundaries (tokens/token_boundaries.hpp), and each run is encoded alone. The text
// stays whole if a run's tokens could depend on other runs (see the constructor).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "bytes/utf8.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/sentencepiece/encoder.hpp"
#include "tokenizer/tokens/merge.hpp"
#include "tokenizer/tokens/token_boundaries.hpp"

namespace poise {
namespace {

class SentencePieceBpe final : public SentencePieceEncoder {
 public:
  explicit SentencePieceBpe(const Vocabulary& vocabulary)
      : SentencePieceEncoder(vocabulary), boundaries_(TokenBoundaries::Unit::characters) {
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
      const auto token = static_cast<TokenId>(id);
      if (is_piece(type(token))) boundaries_.add(vocabulary.text(id));
      // How an unused token is split depends on its other occurrences in the text; a token of invalid UTF-8 may end
      // inside a character.
      whole_ = whole_ || type(token) == TokenType::unused || (is_piece(type(token)) && !is_utf8(vocabulary.text(id)));
    }
  }

 private:
  void append_pieces(std::string_view normalized, Output& output) const override {
    if (whole_ || !is_utf8(normalized)) return merge_text(normalized, output);
    constexpr std::size_t kFew = 4096;  // bytes; for shorter texts a cache costs more than it saves
    std::optional<WordCache> cache;
    if (normalized.size() > kFew) cache.emplace();
    std::vector<TokenId> ids;
    boundaries_.for_each_run(normalized, [&](std::string_view word) {
      EncodingStop::check();
      const bool cached = cache && word.size() <= WordCache::kLongestWord;
      if (cached) {
        if (const auto known = cache->find(word); !known.empty()) {
          for (const TokenId id : known) output.add_token(id);
          return;
        }
      }
      ids.clear();
      bool all_known = true;
      for (const std::string_view piece : merge_word(word)) {
        const TokenId id = find_piece(piece);
        all_known = all_known && id != vocabulary_.unk_id;
        output.add(piece, id);
        ids.push_back(id);
      }
      if (cached && all_known) cache->store(word, ids);
    });
  }

  std::vector<std::string_view> merge_word(std::string_view word) const {
    return merge_symbols(cut_symbols(word),
                         [this](std::string_view left, std::string_view right) -> std::optional<double> {
                           const std::string_view joined(left.data(), left.size() + right.size());
                           if (joined.size() > longest_piece()) return std::nullopt;
                           const auto found = pieces().find(joined);
                           return found ? std::optional(find_score(*found)) : std::nullopt;
                         });
  }

  void merge_text(std::string_view normalized, Output& output) const {
    // Maps the text of each unused token to the length of the left part of the last pair that find_priority() found for
    // it. As in SentencePiece, this need not be the pair that merged.
    std::unordered_map<std::string_view, std::size_t> splits;
    const auto find_priority = [&](std::string_view left, std::string_view right) -> std::optional<double> {
      const std::string_view joined(left.data(), left.size() + right.size());
      if (joined.size() > longest_piece()) return std::nullopt;
      const auto found = pieces().find(joined);
      if (!found) return std::nullopt;
      if (type(*found) == TokenType::unused) splits[joined] = left.size();
      return find_score(*found);
    };
    for (const std::string_view piece : merge_symbols(cut_symbols(normalized), find_priority))
      split_unused_tokens(piece, splits, output);
  }

  double find_score(TokenId id) const {
    const float score = vocabulary_.score(static_cast<std::size_t>(id));
    return std::isnan(score) ? -std::numeric_limits<double>::infinity() : static_cast<double>(score);
  }

  std::vector<Symbol> cut_symbols(std::string_view text) const {
    std::vector<Symbol> symbols;
    symbols.reserve(text.size());
    while (!text.empty()) {
      std::size_t length = user_defined().find_longest(text).length;
      const bool frozen = length > 0;
      if (!frozen) length = std::min(find_announced_length(text.front()), text.size());
      symbols.push_back({text.substr(0, length), frozen});
      text.remove_prefix(length);
    }
    return symbols;
  }

  void split_unused_tokens(std::string_view piece, const std::unordered_map<std::string_view, std::size_t>& splits,
                           Output& output) const {
    std::vector<std::string_view> stack = {piece};
    while (!stack.empty()) {
      const std::string_view top = stack.back();
      stack.pop_back();
      const TokenId id = find_piece(top);
      const bool unused = id >= 0 && type(id) == TokenType::unused;
      const auto split = unused ? splits.find(top) : splits.end();
      if (split == splits.end()) {
        output.add(top, id);
      } else {
        stack.push_back(top.substr(split->second));
        stack.push_back(top.substr(0, split->second));
      }
    }
  }

  TokenBoundaries boundaries_;
  bool whole_ = false;  // true if texts must not be cut at boundaries
};

}  // namespace

std::unique_ptr<const TokenScheme> make_sentencepiece_bpe(const Vocabulary& vocabulary) {
  return std::make_unique<SentencePieceBpe>(vocabulary);
}

}  // namespace poise
