// Runs the work of a session on its threads, and cancels it.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace poise {

class SessionThreads {
 public:
  // Uses at most `threads` threads; 0: one for each processor. Throws bad_argument for more than 1024.
  explicit SessionThreads(unsigned threads);
  // Uses the same number of threads as `other`.
  SessionThreads(const SessionThreads& other) : count_(other.count_), arena_(count_) {}

  // Runs `work` on the threads. After a stop request, the loops of the work end early, and run() throws cancelled.
  // Several threads may call run() at once.
  void run(const std::stop_token& stop, const std::function<void()>& work) const;

 private:
  int count_;
  mutable tbb::task_arena arena_;  // creates its threads for the first work
};

// Divides [0, count) into parts and calls use(first, last) for each, in parallel on the threads of the calling task
// arena. If there are several parts, each has at least `least` / 2 items. A single part runs on the calling thread.
template <class Use>
void run_in_parallel(std::size_t count, std::size_t least, const Use& use) {
  if (count <= least) return use(std::size_t{0}, count);
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, count, least),
                    [&](const tbb::blocked_range<std::size_t>& range) { use(range.begin(), range.end()); });
}

inline constexpr std::size_t kLeastNumbers = 16384;  // fewer are not worth a task

}  // namespace poise
