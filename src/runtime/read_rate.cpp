#include "runtime/read_rate.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <thread>
#include <vector>

namespace poise {
namespace {

// Adds up words in eight independent sums, which hide the latency of additions.
std::uint64_t add_words(std::span<const std::uint64_t> words) {
  constexpr std::size_t kSums = 8;
  std::array<std::uint64_t, kSums> sums{};
  for (std::size_t i = 0; i + kSums <= words.size(); i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) sums.at(k) += words[i + k];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

double measure_read_rate(unsigned threads, std::size_t bytes) {
  const std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t), 1);
  std::atomic<std::uint64_t> total = 0;
  const auto read_share = [&](unsigned thread) {
    const std::size_t first = words.size() * thread / threads;
    const std::size_t last = words.size() * (thread + 1) / threads;
    total += add_words(std::span(words).subspan(first, last - first));
  };
  std::array<double, 3> seconds{};
  for (double& pass : seconds) {
    const auto start = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> others;
      for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(read_share, thread);
      read_share(0);
    }
    pass = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::ranges::sort(seconds);
  // The sum is used, so that the compiler cannot leave out the reads.
  return total == 0 ? 0 : static_cast<double>(words.size() * sizeof(std::uint64_t)) / seconds[1];
}

}  // namespace poise
