// Steps that were begun come to their end, whatever happens to the process that began them.
#include "io/uninterrupted.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace poise {
namespace {

TEST(Uninterrupted, ReturnsWhatTheStepsReturn) {
  const pid_t before = ::getpid();
  EXPECT_EQ(run_uninterrupted([](const void*) noexcept { return ::rename("/nonexistent/a", "/nonexistent/b") == 0 ? 0 : errno; }, nullptr), ENOENT);
  EXPECT_EQ(run_uninterrupted([](const void* parent) noexcept { return ::getpid() == *static_cast<const pid_t*>(parent) ? 1 : 0; }, &before), 0);
  EXPECT_EQ(run_uninterrupted([](const void*) noexcept { return ::getsid(0) == ::getpid() ? 7 : 0; }, nullptr), 7);
}

TEST(Uninterrupted, TellsWhenTheStepsWereKilled) {
  const pid_t self = ::getpid();
  const auto kill_child = [](const void* parent) noexcept { return ::getpid() == *static_cast<const pid_t*>(parent) ? 1 : ::kill(::getpid(), SIGKILL); };
  EXPECT_EQ(run_uninterrupted(kill_child, &self), -1);
}

TEST(Uninterrupted, LeavesNoChildAndNoSignalBehind) {
  sigset_t before, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  run_uninterrupted([](const void*) noexcept { return 0; }, nullptr);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < SIGRTMIN; ++signal) EXPECT_EQ(::sigismember(&after, signal), ::sigismember(&before, signal)) << signal;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG | __WALL), -1);
  EXPECT_EQ(errno, ECHILD);
}

// The steps tell that they have begun, wait a moment, and tell of their end; in between a process and its group are killed.
TEST(Uninterrupted, GoesOnWhenItsProcessAndGroupAreKilled) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t process = ::fork();
  ASSERT_GE(process, 0);
  if (process == 0) {
    ::setpgid(0, 0);
    run_uninterrupted(
        [](const void* argument) noexcept {
          const int out = *static_cast<const int*>(argument);
          const timespec moment{0, 200'000'000};
          (void)!::write(out, "b", 1);
          ::nanosleep(&moment, nullptr);
          (void)!::write(out, "e", 1);
          return 0;
        },
        &pipe_ends[1]);
    ::_exit(0);
  }
  ::close(pipe_ends[1]);
  char told = 0;
  ASSERT_EQ(::read(pipe_ends[0], &told, 1), 1);
  EXPECT_EQ(told, 'b');
  EXPECT_EQ(::kill(-process, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(::read(pipe_ends[0], &told, 1), 1);
  EXPECT_EQ(told, 'e');
  ::close(pipe_ends[0]);
}

}  // namespace
}  // namespace poise
