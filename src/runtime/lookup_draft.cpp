#include <algorithm>

#include "runtime/draft.hpp"

namespace poise {
namespace {

class LookupDraft final : public Draft {
 public:
  std::unique_ptr<Draft> copy() const override { return std::make_unique<LookupDraft>(*this); }

  std::vector<Guess> guess(std::span<const TokenId> tokens, std::size_t most, Sampler&) override {
    const std::size_t begin = place_after_same(tokens);
    std::vector<Guess> guesses;
    if (begin == 0) return guesses;
    // Where the text ends, its guesses go on: they repeat what they follow.
    for (std::size_t i = begin; guesses.size() < most; ++i)
      guesses.push_back({i < tokens.size() ? tokens[i] : guesses[i - tokens.size()].token});
    return guesses;
  }

 private:
  // The place after the longest run of tokens that the text ends with, too; of equally long ones the last. 0: none.
  static std::size_t place_after_same(std::span<const TokenId> tokens) {
    constexpr std::size_t kLeast = 2;
    constexpr std::size_t kLongest = 8;
    std::size_t best = 0;
    std::size_t longest = kLeast - 1;
    for (std::size_t end = tokens.size() - std::min<std::size_t>(tokens.size(), 1); end > 0; --end) {
      std::size_t same = 0;
      while (same < std::min(kLongest, end) && tokens[end - 1 - same] == tokens[tokens.size() - 1 - same]) ++same;
      if (same <= longest) continue;
      best = end;
      longest = same;
      if (longest == kLongest) break;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Draft> make_lookup_draft() { return std::make_unique<LookupDraft>(); }

}  // namespace poise
