#include "tokenizer/tokens/token_index.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

TokenTexts::TokenTexts(const Vocabulary& vocabulary) {
  table_.insert_all(
      static_cast<std::uint32_t>(vocabulary.size()), [&](std::uint32_t id) { return vocabulary.text(id); },
      [this](std::uint32_t id, std::uint32_t first) {
        duplicates_.push_back({static_cast<TokenId>(id), static_cast<TokenId>(first)});
      });
}

std::optional<TokenId> TokenTexts::find(const Vocabulary& vocabulary, std::string_view text) const {
  const auto found = table_.find(text, [&](std::uint32_t id) { return vocabulary.text(id); });
  return found ? std::optional(static_cast<TokenId>(*found)) : std::nullopt;
}

void TokenTexts::find_many(const Vocabulary& vocabulary, std::span<const std::string_view> texts,
                           std::span<TokenId> ids) const {
  static_assert(std::bit_cast<TokenId>(TextTable::kNone) == -1);
  const std::span positions(reinterpret_cast<std::uint32_t*>(ids.data()), ids.size());
  table_.find_many(texts, positions, [&](std::uint32_t id) { return vocabulary.text(id); });
}

void TokenTexts::guess_many(std::span<const std::string_view> texts, std::span<TokenId> ids) const {
  // Equals any text, so that only the hash decides.
  struct AnyText {
    const char* data() const { return nullptr; }
    bool operator==(std::string_view) const { return true; }
  };
  const std::span positions(reinterpret_cast<std::uint32_t*>(ids.data()), ids.size());
  table_.find_many(texts, positions, [](std::uint32_t) { return AnyText(); });
}

TokenIndex::TokenIndex(const Vocabulary& vocabulary, std::vector<bool> hidden)
    : vocabulary_(vocabulary), texts_(TokenTexts::get(vocabulary)), hidden_(std::move(hidden)), passed_(hidden_) {
  if (!texts_) texts_ = std::make_shared<const TokenTexts>(vocabulary);
  passed_.resize(vocabulary.size());
  for (const auto& [id, first] : texts_->duplicates()) {
    passed_[static_cast<std::size_t>(id)] = true;
    if (is_shown(id) && !is_shown(first)) add(id);
  }
}

void TokenIndex::find_many(std::span<const std::string_view> texts, std::span<TokenId> ids) const {
  if (!texts_) {
    std::ranges::transform(texts, ids.begin(), [this](std::string_view text) { return find(text).value_or(-1); });
    return;
  }
  texts_->find_many(vocabulary_, texts, ids);
  if (hidden_.empty()) return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && !is_shown(ids[i])) ids[i] = find(texts[i]).value_or(-1);
  }
}

std::size_t TokenIndex::count_missing(std::span<const std::string_view> texts) const {
  constexpr std::size_t kAtOnce = 64;
  std::array<TokenId, kAtOnce> ids;
  std::size_t missing = 0;
  for (; !texts.empty(); texts = texts.subspan(std::min(kAtOnce, texts.size()))) {
    const auto batch = texts.first(std::min(kAtOnce, texts.size()));
    if (texts_) {
      texts_->guess_many(batch, std::span(ids).first(batch.size()));
    } else {
      find_many(batch, std::span(ids).first(batch.size()));
    }
    for (std::size_t i = 0; i < batch.size(); ++i)
      missing += ids[i] < 0 || (!is_shown(ids[i]) && !find(batch[i])) ? 1 : 0;
  }
  return missing;
}

PrefixTrie::PrefixTrie() : slots_(16), mask_(15), values_(1, -1) { first_.fill(kNone); }

void PrefixTrie::grow() {
  const auto before = std::exchange(slots_, std::vector<std::uint64_t>(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  for (const std::uint64_t slot : before) {
    if (slot == 0) continue;
    std::size_t at = hash(slot >> kNodeBits) & mask_;
    while (slots_[at] != 0) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

PrefixTrie::Node PrefixTrie::add_child(Node node, char byte) {
  if (const Node found = step(node, byte); found != kNone) return found;
  if (values_.size() > kNodeMask)
    throw Error(ErrorKind::unsupported,
                "the index of the vocabulary's texts needs more than 16 million nodes, the most that Poise makes");
  const auto fresh = static_cast<Node>(values_.size());
  values_.push_back(-1);
  if (node == kRoot) return first_[static_cast<unsigned char>(byte)] = fresh;
  if (2 * ++taken_ > slots_.size()) grow();
  const std::uint64_t key = make_key(node, byte);
  std::size_t at = hash(key) & mask_;
  while (slots_[at] != 0) at = (at + 1) & mask_;
  slots_[at] = key << kNodeBits | fresh;
  return fresh;
}

void PrefixTrie::add(std::string_view text, std::int32_t value) {
  if (text.size() > kLongest)
    throw Error(ErrorKind::unsupported,
                fmt::format("tokenizer: token {} has {} bytes, more than {}", value, text.size(), kLongest));
  Node node = kRoot;
  for (const char byte : text) node = add_child(node, byte);
  if (values_[node] < 0) values_[node] = value;
}

}  // namespace poise
