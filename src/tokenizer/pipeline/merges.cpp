#include "tokenizer/pipeline/merges.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>

#include "tokenizer/tokens/byte_level.hpp"

namespace poise {

void MergeTable::grow() {
  const auto before = std::exchange(slots_, decltype(slots_)(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.key == kFree) continue;
    std::size_t at = hash(slot.key) & mask_;
    while (slots_[at].key != kFree) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  if (size_ == kMost) {
    std::ranges::fill(slots_, Slot());
    size_ = 0;
  }
  if (2 * ++size_ > slots_.size()) grow();
  const std::uint64_t key = make_key(left, right);
  std::size_t at = hash(key) & mask_;
  while (slots_[at].key != kFree) at = (at + 1) & mask_;
  slots_[at] = {key, merge};
}

namespace {

constexpr std::size_t kBytePiece = 6;  // bytes of "<0x0A>"

}  // namespace

Merges::Merges(const Fields& model, const Vocabulary& vocabulary, const TokenIndex& ids, std::string_view prefix)
    : vocabulary_(vocabulary), ids_(ids), prefix_(prefix), by_score_(model.read_boolean("merge_by_score", false)) {
  for (std::size_t id = 0; id < vocabulary.size(); ++id) longest_ = std::max(longest_, vocabulary.text(id).size());
  by_score_ ? rank_by_score() : read_list(model);
}

MergeTable::Merge Merges::find(TokenId left, TokenId right, std::string& buffer) const {
  const std::string_view front = text(left);
  std::string_view back = text(right);
  if (!prefix_.empty()) {
    if (back.size() < prefix_.size()) return {};
    back.remove_prefix(prefix_.size());
  }
  if (front.size() + back.size() > longest_) return {};
  if (by_score_ && !back.empty() && (static_cast<unsigned char>(back.front()) & 0xC0) == 0x80) return {};
  buffer.assign(front).append(back);
  const auto merged = ids_.find(buffer);
  if (!merged) return {};
  std::uint32_t rank = ranks_[static_cast<std::size_t>(*merged)];
  if (!by_score_) {
    while (rank != kNone && !is_pair(rank, front, text(right))) rank = before_[rank];
  }
  return rank == kNone ? MergeTable::Merge{} : MergeTable::Merge{rank, *merged};
}

void Merges::read_list(const Fields& model) {
  const MergeList& merges = vocabulary_.merges;
  const bool skip_unknown = model.read_boolean("skip_unknown_merges", false);
  std::size_t first_missing = merges.size();
  const auto record_merges = [&] {
    ranks_.assign(vocabulary_.size(), kNone);
    before_.resize(merges.size());
    TokenId last = kNoToken;
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      last = find_merged_token(rank, last);
      if (last != kNoToken) {
        add(static_cast<std::uint32_t>(rank), last);
      } else {
        first_missing = std::min(first_missing, rank);
      }
    }
  };
  if (skip_unknown) return record_merges();
  std::size_t first_unknown = merges.size();
  tbb::parallel_invoke(record_merges, [&] { first_unknown = find_first_unknown_merge(); });
  if (const std::size_t first = std::min(first_missing, first_unknown); first < merges.size()) refuse(model, first);
}

// Returns the rank of the first merge that has a part without a token, or the number of merges.
std::size_t Merges::find_first_unknown_merge() const {
  const MergeList& merges = vocabulary_.merges;
  constexpr std::size_t kAtOnce = 4096;
  std::atomic<bool> missing = false;
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, merges.size(), kAtOnce), [&](const auto& range) {
    constexpr std::size_t kPairs = 64;
    std::array<std::string_view, 2 * kPairs> texts;
    for (std::size_t rank = range.begin(); rank < range.end(); rank += kPairs) {
      const std::size_t count = std::min(kPairs, range.end() - rank);
      for (std::size_t i = 0; i < count; ++i) std::tie(texts[2 * i], texts[2 * i + 1]) = merges[rank + i];
      if (ids_.count_missing(std::span(texts).first(2 * count)) > 0) missing = true;
    }
  });
  if (!missing) return merges.size();
  std::size_t rank = 0;
  while (rank < merges.size() && ids_.find(merges[rank].first) && ids_.find(merges[rank].second)) ++rank;
  return rank;
}

void Merges::refuse(const Fields& model, std::size_t rank) const {
  const auto [left, right] = vocabulary_.merges[rank];
  if (right.size() < prefix_.size())
    model.fail("merges", fmt::format("\"{}\" is shorter than continuing_subword_prefix", right));
  const std::string joined = std::string(left).append(right, prefix_.size());
  model.fail("merges", fmt::format("\"{}\" is not a token", !ids_.find(left)    ? left
                                                            : !ids_.find(right) ? right
                                                                                : joined));
}

// Returns true if the merge of this rank is the pair. Requires: the merge and the pair make the same token. So without
// a prefix, it suffices to compare the lengths of the left texts.
bool Merges::is_pair(std::uint32_t rank, std::string_view left, std::string_view right) const {
  const auto [first, second] = vocabulary_.merges[rank];
  return first.size() == left.size() && (prefix_.empty() || second == right);
}

// Adds a merge. If a pair is listed twice, the later merge counts.
void Merges::add(std::uint32_t rank, TokenId merged) {
  const auto [left, right] = vocabulary_.merges[rank];
  std::uint32_t* place = &ranks_[static_cast<std::size_t>(merged)];
  before_[rank] = *place;
  for (std::uint32_t* at = &before_[rank]; *at != kNone; at = &before_[*at]) {
    if (!is_pair(*at, left, right)) continue;
    *at = before_[*at];
    break;
  }
  *place = rank;
  has_bytes_ = has_bytes_ || is_byte(left) || is_byte(right);
}

bool Merges::is_byte(std::string_view text) const {
  return text.size() == kBytePiece && parse_byte_piece(text) && ids_.find(text);
}

// Returns the token that a merge makes, or kNoToken. Looks first at `last`, the token of the previous merge, and at the
// next id, because most files list tokens in the order of their merges.
TokenId Merges::find_merged_token(std::size_t rank, TokenId last) const {
  if (!prefix_.empty()) {
    const auto [left, right] = vocabulary_.merges[rank];
    if (right.size() < prefix_.size()) return kNoToken;
    return ids_.find(std::string(left).append(right, prefix_.size())).value_or(kNoToken);
  }
  const std::string_view joined = vocabulary_.merges.joined(rank);
  for (TokenId id = last; last != kNoToken && id <= last + 1 && static_cast<std::size_t>(id) < vocabulary_.size();
       ++id) {
    if (text(id) == joined && ids_.is_found(id)) return id;
  }
  return ids_.find(joined).value_or(kNoToken);
}

void Merges::rank_by_score() {
  const auto ranks = compute_token_ranks(vocabulary_, ids_);
  ranks_.assign(ranks.begin(), ranks.end());
  for (std::size_t id = 0; id < ranks_.size(); ++id) {
    const std::string_view joined = vocabulary_.text(id);
    if (joined.size() > kLongestMergedToken) ranks_[id] = kNone;
    if (has_bytes_ || ranks_[id] == kNone || joined.size() <= kBytePiece) continue;
    has_bytes_ =
        (is_byte(joined.substr(0, kBytePiece)) && ids_.find(joined.substr(kBytePiece))) ||
        (is_byte(joined.substr(joined.size() - kBytePiece)) && ids_.find(joined.substr(0, joined.size() - kBytePiece)));
  }
}

namespace {

struct Ranked {
  TokenId id;
  std::uint32_t rank;
};

// Returns the tokens that merges may produce, the highest score first.
std::vector<Ranked> rank_tokens(const Vocabulary& vocabulary, const TokenIndex& ids) {
  std::vector<std::pair<float, TokenId>> order;
  order.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (ids.is_found(static_cast<TokenId>(id)) && !std::isnan(vocabulary.score(id)))
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

  void append_merges(std::span<const Ranked> tokens, std::vector<ScoreMerge>& merges) const {
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
  std::array<bool, kLongestMergedToken> is_length_{};  // true for lengths of tokens that merge; avoids useless look-ups
};

}  // namespace

std::vector<std::uint32_t> compute_token_ranks(const Vocabulary& vocabulary, const TokenIndex& ids) {
  std::vector<std::uint32_t> ranks(vocabulary.size(), UINT32_MAX);
  for (const auto& [id, rank] : rank_tokens(vocabulary, ids)) ranks[static_cast<std::size_t>(id)] = rank;
  return ranks;
}

void for_each_score_merge(const Vocabulary& vocabulary, const TokenIndex& ids,
                          FunctionRef<void(const ScoreMerge&)> visit) {
  const std::vector<Ranked> tokens = rank_tokens(vocabulary, ids);
  const Splitter splitter(vocabulary, ids, tokens);
  constexpr std::size_t kAtOnce = 1024;
  std::array<std::vector<ScoreMerge>, 16> merges;  // the merges of a batch of tokens: all would take much memory
  for (std::span<const Ranked> rest = tokens; !rest.empty();) {
    const std::span<const Ranked> now = rest.first(std::min(rest.size(), kAtOnce * merges.size()));
    rest = rest.subspan(now.size());
    tbb::parallel_for(std::size_t{0}, merges.size(), [&](std::size_t i) {
      const std::size_t begin = std::min(i * kAtOnce, now.size());
      merges[i].clear();
      splitter.append_merges(now.subspan(begin, std::min(kAtOnce, now.size() - begin)), merges[i]);
    });
    for (const auto& batch : merges) std::ranges::for_each(batch, visit);
  }
}

std::vector<std::pair<std::string_view, std::string_view>> list_score_merges(const Vocabulary& vocabulary,
                                                                             const TokenIndex& ids) {
  std::vector<ScoreMerge> merges;
  for_each_score_merge(vocabulary, ids, [&](const ScoreMerge& merge) { merges.push_back(merge); });
  const auto get_text = [&](TokenId id) { return vocabulary.text(static_cast<std::size_t>(id)); };
  std::ranges::stable_sort(merges, [&](const ScoreMerge& a, const ScoreMerge& b) {
    return a.rank != b.rank ? a.rank < b.rank : get_text(a.left).size() > get_text(b.left).size();
  });
  std::vector<std::pair<std::string_view, std::string_view>> texts;
  texts.reserve(merges.size());
  for (const ScoreMerge& merge : merges) texts.emplace_back(get_text(merge.left), get_text(merge.right));
  return texts;
}

}  // namespace poise
