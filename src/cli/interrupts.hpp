// Ctrl-C as a request to stop one piece of work, and not the program.
#pragma once

#include <csignal>

#include <functional>
#include <stop_token>

namespace poise::cli {

// While it exists, Ctrl-C does not end the program.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Was Ctrl-C pressed since this or run() was called last?
  bool take();

  // Runs work with a token that Ctrl-C requests to stop; tells whether it was.
  bool run(const std::function<void(const std::stop_token& stop)>& work);

 private:
  struct sigaction before_ = {};
};

}  // namespace poise::cli
