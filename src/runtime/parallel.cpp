#include "runtime/parallel.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/task_group.h>

#include <poise/error.hpp>

#include "runtime/computation.hpp"

namespace poise {
namespace {

constexpr unsigned kMaxThreads = 1024;

int choose_concurrency(unsigned threads) {
  if (threads > kMaxThreads)
    throw Error(ErrorKind::bad_argument, fmt::format("{} threads, at most {} make sense", threads, kMaxThreads));
  // oneTBB prints a warning when a program asks for more threads than there are processors.
  const int processors = tbb::info::default_concurrency();
  return threads == 0 ? processors : std::min(static_cast<int>(threads), processors);
}

}  // namespace

SessionThreads::SessionThreads(unsigned threads) : count_(choose_concurrency(threads)), arena_(count_) {}

void SessionThreads::run(const std::stop_token& stop, const std::function<void()>& work) const {
  arena_.execute([&] {
    if (!stop.stop_possible()) return work();
    tbb::task_group_context context;
    const std::stop_callback cancel(stop, [&] { context.cancel_group_execution(); });
    tbb::task_group group(context);
    if (group.run_and_wait(work) == tbb::canceled) throw_cancelled();
  });
}

}  // namespace poise
