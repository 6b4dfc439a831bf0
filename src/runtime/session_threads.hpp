// SessionThreads: the threads of a session, and cancellation of their work.
#pragma once

#include <functional>
#include <stop_token>

#include <tbb/task_arena.h>

namespace poise {

class SessionThreads {
 public:
  // At most that many; 0: one for each processor. Throws bad_argument for an absurd number.
  explicit SessionThreads(unsigned threads);
  // The same number of threads.
  SessionThreads(const SessionThreads& other) : count_(other.count_), arena_(count_) {}

  // Runs `work` on them. A stop request cancels the loops of the work; then throws cancelled.
  // Safe from several threads.
  void run(const std::stop_token& stop, const std::function<void()>& work) const;

 private:
  int count_;
  mutable tbb::task_arena arena_;  // begins with the first work
};

}  // namespace poise
