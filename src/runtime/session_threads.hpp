// SessionThreads: the threads of a session, and how a caller stops what they compute.
#pragma once

#include <functional>
#include <stop_token>

#include <tbb/task_arena.h>

namespace poise {

class SessionThreads {
 public:
  // At most so many; 0: one for each processor. Throws bad_argument for more than make sense.
  explicit SessionThreads(unsigned threads);
  // As many others.
  SessionThreads(const SessionThreads& other) : count_(other.count_), arena_(count_) {}

  // Runs `work` on them. A request to stop cancels the loops that the work has begun; throws cancelled then.
  void run(const std::stop_token& stop, const std::function<void()>& work);

 private:
  int count_;
  tbb::task_arena arena_;
};

}  // namespace poise
