#include "runtime/draft.hpp"

#include <algorithm>

namespace poise {

std::size_t GuessPace::next() {
  if (pause_ == 0) return size_;
  --pause_;
  return 0;
}

void GuessPace::checked(std::size_t guessed, std::size_t right) {
  constexpr std::size_t kLeast = 4;
  constexpr std::size_t kLongestPause = 32;
  if (right == guessed) {
    size_ = std::min(most_, 2 * size_);
  } else if (2 * right < guessed) {
    size_ = std::min(most_, std::max(kLeast, size_ / 2));
  }
  // A pass for several tokens takes as long as two or three for one.
  if (3 * right >= guessed) {
    next_pause_ = 1;
    return;
  }
  pause_ = next_pause_;
  next_pause_ = std::min(kLongestPause, 2 * next_pause_);
}

}  // namespace poise
