// LongCall: runs work without the GIL, reports progress to Python, and stops when Python or Ctrl-C requests it.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <type_traits>

#include <poise/progress.hpp>

#include "face.hpp"
#include "gil.hpp"
#include "tokenizer/tokens/merge.hpp"

namespace poise::python {

// Runs work. Python handles signals on its main thread only, so a call on the main thread runs the work on another
// thread and handles signals meanwhile.
class LongCall {
 public:
  // `progress` is None, or a function of (done, total, item): if it returns False or raises, the work stops.
  explicit LongCall(py::object progress = py::none()) : callback_(std::move(progress)) {}

  // Returns a callback for the library. It calls the Python callback, from any thread.
  Progress make_progress();
  // Returns true if the work should end. Work that reports no progress calls this.
  bool is_stopped() const { return stop_.stop_requested(); }
  // Returns a token that is stopped when the work should end.
  std::stop_token stop_token() const { return stop_.get_token(); }

  // Runs the work without the GIL. Throws what Python raised meanwhile, else what the work throws. Requires: the GIL.
  template <typename Work>
  auto run(Work&& work) {
    using Result = std::invoke_result_t<Work&>;
    if constexpr (std::is_void_v<Result>) {
      execute(work);
    } else {
      std::optional<Result> result;
      execute([&] { result.emplace(work()); });
      return std::move(*result);
    }
  }

 private:
  void execute(const std::function<void()>& work);
  void watch_for_interrupts(const std::function<bool()>& wait);
  void keep_error();  // stops the work, and keeps Python's current error, unless there is an earlier one

  py::object callback_;
  std::stop_source stop_;
  py::object raised_[3];  // type, value, traceback
};

// Runs work that encodes texts, without the GIL. Ctrl-C stops it, unless there are few bytes, which take less time than
// a key press.
template <typename Work>
auto run_encoding(std::size_t bytes, Work&& work) {
  constexpr std::size_t kFew = 1 << 19;
  if (bytes < kFew) {
    const Released released;
    return work();
  }
  LongCall call;
  return call.run([&, stop = call.stop_token()] {
    const EncodingStop stoppable(stop);
    return work();
  });
}

}  // namespace poise::python
