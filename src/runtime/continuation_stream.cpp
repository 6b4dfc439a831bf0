#include "runtime/continuation_stream.hpp"

#include <algorithm>

namespace poise {

ContinuationStream::ContinuationStream(const Tokenizer& tokenizer, std::span<const TokenId> before,
                                       const std::vector<std::string>& stops)
    : stream_(tokenizer), stops_(stops) {
  // The last tokens decide on the space before the first word, and on a character's first bytes. Decoding that many
  // takes less than a millisecond.
  constexpr std::size_t kLooksBack = 1024;
  for (const TokenId token : before.last(std::min(before.size(), kLooksBack))) {
    if (static_cast<std::size_t>(token) < tokenizer.vocabulary().size()) stream_.add(token);
  }
}

}  // namespace poise
