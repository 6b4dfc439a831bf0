#include "tokenizer/pipeline/score_merges.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <tbb/parallel_for.h>

namespace poise {

namespace {

struct Ranked {
  TokenId id;
  std::uint32_t rank;
};

// The tokens that merges may produce, by score.
std::vector<Ranked> ranked_tokens(const Vocabulary& vocabulary, const TokenIndex& ids) {
  std::vector<std::pair<float, TokenId>> order;
  order.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (ids.finds(static_cast<TokenId>(id)) && !std::isnan(vocabulary.score(id)))
      order.emplace_back(-vocabulary.score(id), static_cast<TokenId>(id));
  }
  std::ranges::sort(order);
  std::vector<Ranked> ranked;
  ranked.reserve(order.size());
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i].first != order[i - 1].first) ++rank;
    ranked.push_back({order[i].second, rank});
  }
  return ranked;
}

// Finds pairs of tokens that make other tokens.
class Splitter {
 public:
  Splitter(const Vocabulary& vocabulary, const TokenIndex& ids, const std::vector<Ranked>& tokens)
      : vocabulary_(vocabulary), ids_(ids) {
    for (const auto& [id, rank] : tokens) {
      if (const std::size_t size = text(id).size(); size < is_length_.size()) is_length_[size] = true;
    }
  }

  void split(std::span<const Ranked> tokens, std::vector<ScoreMerge>& merges) const {
    std::vector<std::string_view> parts;
    std::vector<TokenId> found;
    for (const auto& [id, rank] : tokens) {
      const std::string_view whole = text(id);
      if (whole.size() > kLongestMergedToken) continue;
      parts.clear();
      for (std::size_t cut = 1; cut < whole.size(); ++cut) {
        if (!is_length_[cut] || !is_length_[whole.size() - cut] ||
            (static_cast<unsigned char>(whole[cut]) & 0xC0) == 0x80)
          continue;
        parts.push_back(whole.substr(0, cut));
        parts.push_back(whole.substr(cut));
      }
      found.resize(parts.size());
      ids_.find_many(parts, found);
      for (std::size_t i = 0; i < found.size(); i += 2) {
        if (found[i] >= 0 && found[i + 1] >= 0) merges.push_back({found[i], found[i + 1], id, rank});
      }
    }
  }

 private:
  std::string_view text(TokenId id) const { return vocabulary_.text(static_cast<std::size_t>(id)); }

  const Vocabulary& vocabulary_;
  const TokenIndex& ids_;
  std::array<bool, kLongestMergedToken> is_length_{};  // of tokens that merge; avoids useless look-ups
};

}  // namespace

std::vector<std::uint32_t> merge_ranks(const Vocabulary& vocabulary, const TokenIndex& ids) {
  std::vector<std::uint32_t> ranks(vocabulary.size(), UINT32_MAX);
  for (const auto& [id, rank] : ranked_tokens(vocabulary, ids)) ranks[static_cast<std::size_t>(id)] = rank;
  return ranks;
}

void for_each_score_merge(const Vocabulary& vocabulary, const TokenIndex& ids,
                          FunctionRef<void(const ScoreMerge&)> visit) {
  const std::vector<Ranked> tokens = ranked_tokens(vocabulary, ids);
  const Splitter splitter(vocabulary, ids, tokens);
  constexpr std::size_t kAtOnce = 1024;
  std::array<std::vector<ScoreMerge>, 16> merges;  // by batches of tokens, so that not all exist at a time
  for (std::span<const Ranked> rest = tokens; !rest.empty();) {
    const std::span<const Ranked> now = rest.first(std::min(rest.size(), kAtOnce * merges.size()));
    rest = rest.subspan(now.size());
    tbb::parallel_for(std::size_t{0}, merges.size(), [&](std::size_t i) {
      const std::size_t begin = std::min(i * kAtOnce, now.size());
      merges[i].clear();
      splitter.split(now.subspan(begin, std::min(kAtOnce, now.size() - begin)), merges[i]);
    });
    for (const auto& batch : merges) std::ranges::for_each(batch, visit);
  }
}

std::vector<std::pair<std::string_view, std::string_view>> listed_score_merges(const Vocabulary& vocabulary,
                                                                               const TokenIndex& ids) {
  std::vector<ScoreMerge> merges;
  for_each_score_merge(vocabulary, ids, [&](const ScoreMerge& merge) { merges.push_back(merge); });
  const auto text = [&](TokenId id) { return vocabulary.text(static_cast<std::size_t>(id)); };
  std::ranges::stable_sort(merges, [&](const ScoreMerge& a, const ScoreMerge& b) {
    return a.rank != b.rank ? a.rank < b.rank : text(a.left).size() > text(b.left).size();
  });
  std::vector<std::pair<std::string_view, std::string_view>> texts;
  texts.reserve(merges.size());
  for (const ScoreMerge& merge : merges) texts.emplace_back(text(merge.left), text(merge.right));
  return texts;
}

}  // namespace poise
