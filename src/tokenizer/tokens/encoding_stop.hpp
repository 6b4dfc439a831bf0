// Encoding that can be stopped: its loops over a text ask on the way whether its caller still wants the tokens.
#pragma once

#include <stop_token>

#include <poise/error.hpp>

namespace poise {

// For the calling thread, while it exists. One whose token never stops leaves an outer one in force. Requires: the
// token outlives it.
class EncodingStop {
 public:
  explicit EncodingStop(const std::stop_token& stop) : before_(current()) {
    if (stop.stop_possible()) current() = &stop;
  }
  ~EncodingStop() { current() = before_; }
  EncodingStop(const EncodingStop&) = delete;
  EncodingStop& operator=(const EncodingStop&) = delete;

  // Throws cancelled if the thread was told to stop.
  static void check() {
    const std::stop_token* const stop = current();
    if (stop != nullptr && stop->stop_requested())
      throw Error(ErrorKind::cancelled, "the encoding of a text was told to stop");
  }

 private:
  static const std::stop_token*& current() {
    thread_local const std::stop_token* stop = nullptr;
    return stop;
  }

  const std::stop_token* before_;
};

}  // namespace poise
