#include "cli/shrinking_files.hpp"

#include <csignal>
#include <string_view>

#include <unistd.h>

namespace poise::cli {
namespace {

// Async-signal-safe. Outputs are unnamed or complete at this point.
void report(int) {
  constexpr std::string_view kMessage = "poise: a file changed while being read; --io read copes with that\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(1);
}

}  // namespace

void report_files_that_shrink() {
  struct sigaction action {};
  action.sa_handler = report;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace poise::cli
