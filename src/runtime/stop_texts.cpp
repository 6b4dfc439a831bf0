#include "runtime/stop_texts.hpp"

#include <algorithm>
#include <utility>

#include <poise/error.hpp>

namespace poise {

StopTexts::StopTexts(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::ranges::any_of(stops_, &std::string::empty)) throw Error(ErrorKind::bad_argument, "a stop text is empty");
}

std::string StopTexts::add(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  std::size_t end = std::string::npos;
  std::size_t begin = 0;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos || at + stop.size() > end) continue;
    begin = at + stop.size() < end ? at : std::min(begin, at);
    end = at + stop.size();
  }
  if (end != std::string::npos) {
    found_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  // Finds the longest suffix that may be the beginning of a stop text.
  std::size_t kept = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(held_.size(), stop.size() - 1); length > kept; --length) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) kept = length;
    }
  }
  std::string certain = held_.substr(0, held_.size() - kept);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopTexts::finish() { return found_ ? std::string() : std::exchange(held_, {}); }

ContinuationStream::ContinuationStream(const Tokenizer& tokenizer, std::span<const TokenId> before,
                                       const std::vector<std::string>& stops)
    : stream_(tokenizer), stops_(stops) {
  // The last tokens decide whether the text begins with a space, and may have the first bytes of its first character.
  // Decoding this many takes less than a millisecond.
  constexpr std::size_t kLooksBack = 1024;
  for (const TokenId token : before.last(std::min(before.size(), kLooksBack))) {
    if (static_cast<std::size_t>(token) < tokenizer.vocabulary().size()) stream_.add(token);
  }
}

}  // namespace poise
