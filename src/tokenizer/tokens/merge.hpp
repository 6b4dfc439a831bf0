// Implements the core of byte pair encoding: merges neighbouring symbols, the best pair first, until no pair merges.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <stop_token>
#include <string_view>
#include <vector>

#include <poise/error.hpp>

namespace poise {

// Stops the encodings of this thread at the request of a stop token, while this object exists: loops over a text call
// check(). If nobody can request a stop of the token, the token of an outer EncodingStop stays in force. Requires: the
// token outlives this.
class EncodingStop {
 public:
  explicit EncodingStop(const std::stop_token& stop) : before_(current()) {
    if (stop.stop_possible()) current() = &stop;
  }
  ~EncodingStop() { current() = before_; }
  EncodingStop(const EncodingStop&) = delete;
  EncodingStop& operator=(const EncodingStop&) = delete;

  // Throws cancelled if the thread was asked to stop.
  static void check() {
    const std::stop_token* const stop = current();
    if (stop != nullptr && stop->stop_requested())
      throw Error(ErrorKind::cancelled, "the encoding of a text was stopped");
  }

 private:
  static const std::stop_token*& current() {
    thread_local const std::stop_token* stop = nullptr;
    return stop;
  }

  const std::stop_token* before_;
};

// Holds a run of the text. It is empty after it has merged into its left neighbour.
struct Symbol {
  std::string_view text;
  bool frozen = false;  // true if it never merges
};

// Merges `symbols`, which are contiguous in one text, and returns the remaining ones. `priority(left, right)` returns a
// number, or std::nullopt if the two do not merge. The pair with the largest number merges first, and the leftmost
// of pairs with equal numbers. Calls `priority` less than 3 times for each symbol, and takes O(n log n) time.
template <typename Priority>
std::vector<std::string_view> merge_symbols(std::vector<Symbol> symbols, Priority&& priority) {
  constexpr std::size_t kNone = SIZE_MAX;
  struct Pair {
    double priority;
    std::size_t left;
    std::size_t right;
    std::size_t bytes;  // the size of both; if it differs when the pair is next, one of them has merged since

    bool operator<(const Pair& other) const {
      return priority < other.priority || (priority == other.priority && left > other.left);
    }
  };
  std::vector<std::size_t> next(symbols.size());
  std::vector<std::size_t> previous(symbols.size());
  std::priority_queue<Pair> agenda;

  const auto queue_pair = [&](std::size_t left, std::size_t right) {
    if (left == kNone || right == kNone || symbols[left].frozen || symbols[right].frozen) return;
    const std::optional<double> rank = priority(symbols[left].text, symbols[right].text);
    if (rank) agenda.push({*rank, left, right, symbols[left].text.size() + symbols[right].text.size()});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    EncodingStop::check();
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == symbols.size() ? kNone : i + 1;
    queue_pair(previous[i], i);
  }
  while (!agenda.empty()) {
    EncodingStop::check();
    const Pair pair = agenda.top();
    agenda.pop();
    std::string_view& left = symbols[pair.left].text;
    std::string_view& right = symbols[pair.right].text;
    if (left.empty() || right.empty() || left.size() + right.size() != pair.bytes) continue;
    left = std::string_view(left.data(), pair.bytes);
    right = {};
    next[pair.left] = next[pair.right];
    if (next[pair.left] != kNone) previous[next[pair.left]] = pair.left;
    queue_pair(previous[pair.left], pair.left);
    queue_pair(pair.left, next[pair.left]);
  }
  std::vector<std::string_view> merged;
  for (std::size_t i = symbols.empty() ? kNone : 0; i != kNone; i = next[i]) merged.push_back(symbols[i].text);
  return merged;
}

}  // namespace poise
