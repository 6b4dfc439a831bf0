#include "cli/interrupts.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace poise::cli {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it

}  // namespace

Interrupts::Interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &before_);
}

Interrupts::~Interrupts() { ::sigaction(SIGINT, &before_, nullptr); }

bool Interrupts::take() { return interrupted.exchange(false); }

bool Interrupts::run(const std::function<void(const std::stop_token& stop)>& work) {
  interrupted = false;
  std::stop_source source;
  // A signal handler may not request a stop itself.
  const std::jthread watch([&source](const std::stop_token& ends) {
    while (!ends.stop_requested() && !interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (interrupted) source.request_stop();
  });
  work(source.get_token());
  const bool was_stopped = source.stop_requested();
  interrupted = false;
  return was_stopped;
}

}  // namespace poise::cli
