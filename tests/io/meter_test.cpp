#include "io/meter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace poise {
namespace {

namespace tbb = oneapi::tbb;

void wait_for(const std::atomic<bool>& event, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!event && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

// One thread waits in the callback for work that a second thread does, while a third thread has other work to give.
TEST(Meter, AThreadThatWaitsInACallbackTakesNoOtherWork) {
  const tbb::global_control three(tbb::global_control::max_allowed_parallelism, 3);
  static thread_local bool calls = false;
  std::atomic<bool> begun = false, taken = false, ended = false;
  Meter meter(
      [&](const ProgressEvent&) {
        calls = true;
        tbb::task_group own;
        own.run([&] {
          begun = true;
          wait_for(taken, std::chrono::milliseconds(100));
        });
        wait_for(begun, std::chrono::seconds(10));
        own.wait();
        calls = false;
        return true;
      },
      1);
  const auto work = [&](int) {
    if (calls) taken = true;  // a call of advance() would wait for the lock of its own thread
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  };
  tbb::task_arena(3).execute([&] {
    tbb::task_group both;
    both.run([&] {
      while (!ended) tbb::parallel_for(0, 64, work, tbb::simple_partitioner());
    });
    both.run([&] {
      meter.advance(1, "tensor");
      ended = true;
    });
    both.wait();
  });
  EXPECT_TRUE(begun);
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace poise
