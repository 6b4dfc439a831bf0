// A Meter counts bytes for a Progress callback, and throws Error{cancelled} if the callback returns false.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include <oneapi/tbb/task_arena.h>

#include <poise/error.hpp>
#include <poise/progress.hpp>

namespace poise {

// Thread-safe. Calls the callback from one thread at a time. The call is isolated: if the callback waits for work of
// its own, its thread must not take other work, which may call the meter.
class Meter {
 public:
  Meter() = default;
  Meter(Progress progress, std::uint64_t total) : progress_(std::move(progress)), total_(total) {}

  // Adds to the bytes that are done, and calls the callback with `item`, the name of the tensor or file that they
  // belong to. Throws cancelled if the callback returns false.
  void advance(std::uint64_t bytes, std::string_view item) {
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    if (!progress_) return;
    const auto report = [&] { return progress_({done_, total_, item}); };
    if (!oneapi::tbb::this_task_arena::isolate(report)) throw Error(ErrorKind::cancelled, "cancelled");
  }

 private:
  std::mutex mutex_;
  Progress progress_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace poise
