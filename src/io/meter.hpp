// A Meter counts bytes for a Progress callback, and throws Error{cancelled} if the callback returns false.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include <poise/error.hpp>
#include <poise/progress.hpp>

namespace poise {

// Thread-safe. Calls the callback from one thread at a time.
class Meter {
 public:
  Meter() = default;
  Meter(Progress progress, std::uint64_t total) : progress_(std::move(progress)), total_(total) {}

  // Adds to the bytes that are done, and calls the callback with `item`, the name of the tensor or file that they
  // belong to. Throws cancelled if the callback returns false.
  void advance(std::uint64_t bytes, std::string_view item) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (progress_ && !progress_({done_, total_, item})) throw Error(ErrorKind::cancelled, "cancelled");
  }

 private:
  std::mutex mutex_;
  Progress progress_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace poise
