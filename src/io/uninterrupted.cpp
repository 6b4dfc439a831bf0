#include "io/uninterrupted.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <memory>

namespace poise {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;

// Signals wait: a handler that ran in the child would find, and change, the memory of its parent.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

struct Task {
  int (*steps)(const void*) noexcept;
  const void* argument;
};

int run_in_child(void* task) {
  ::setsid();
  return static_cast<Task*>(task)->steps(static_cast<Task*>(task)->argument);
}

}  // namespace

int run_uninterrupted(int (*steps)(const void*) noexcept, const void* argument) {
  const auto stack = std::make_unique<std::byte[]>(kStackBytes);
  Task task{steps, argument};
  const SignalsHeld held;
  // Without a signal at its end (the lowest byte is 0), so that no one else's wait() sees this child.
  const pid_t child = ::clone(&run_in_child, stack.get() + kStackBytes, CLONE_VM | CLONE_VFORK, &task);
  if (child < 0) return steps(argument);
  int status = 0;
  const bool ended = ::waitpid(child, &status, static_cast<int>(__WCLONE)) == child && WIFEXITED(status);
  return ended ? WEXITSTATUS(status) : -1;
}

}  // namespace poise
