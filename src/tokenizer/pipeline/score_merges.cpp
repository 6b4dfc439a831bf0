#include "tokenizer/pipeline/score_merges.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace poise {

void for_each_score_merge(const Vocabulary& vocabulary, const TokenIndex& ids, FunctionRef<void(const ScoreMerge&)> visit) {
  std::vector<std::pair<float, TokenId>> order;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (ids.find(vocabulary.text(id)) == static_cast<TokenId>(id) && !std::isnan(vocabulary.score(id))) {
      order.emplace_back(-vocabulary.score(id), static_cast<TokenId>(id));
    }
  }
  std::ranges::sort(order);
  std::array<bool, kLongestMergedToken> is_length{};  // of a token that merges; a look-up takes as long as its text
  for (const auto& [score, id] : order) {
    if (const std::size_t size = vocabulary.text(static_cast<std::size_t>(id)).size(); size < is_length.size()) is_length[size] = true;
  }
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i].first != order[i - 1].first) ++rank;
    const std::string_view text = vocabulary.text(static_cast<std::size_t>(order[i].second));
    if (text.size() > kLongestMergedToken) continue;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (!is_length[cut] || !is_length[text.size() - cut]) continue;
      if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;
      const auto left = ids.find(text.substr(0, cut));
      if (!left) continue;
      const auto right = ids.find(text.substr(cut));
      if (right) visit({*left, *right, order[i].second, rank});
    }
  }
}

std::vector<std::pair<std::string_view, std::string_view>> listed_score_merges(const Vocabulary& vocabulary, const TokenIndex& ids) {
  std::vector<ScoreMerge> merges;
  for_each_score_merge(vocabulary, ids, [&](const ScoreMerge& merge) { merges.push_back(merge); });
  const auto text = [&](TokenId id) { return vocabulary.text(static_cast<std::size_t>(id)); };
  std::ranges::stable_sort(
      merges, [&](const ScoreMerge& a, const ScoreMerge& b) { return a.rank != b.rank ? a.rank < b.rank : text(a.left).size() > text(b.left).size(); });
  std::vector<std::pair<std::string_view, std::string_view>> texts;
  texts.reserve(merges.size());
  for (const ScoreMerge& merge : merges) texts.emplace_back(text(merge.left), text(merge.right));
  return texts;
}

}  // namespace poise
