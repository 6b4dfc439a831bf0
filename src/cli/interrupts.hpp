// Interrupts: Ctrl-C stops one piece of work instead of the program.
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

  // True when Ctrl-C was pressed since the last call of this or run().
  bool take();

  // Runs work with a token that Ctrl-C stops; returns whether it did.
  bool run(const std::function<void(const std::stop_token& stop)>& work);

 private:
  struct sigaction before_ = {};
};

}  // namespace poise::cli
