// LongCall: work that is done without the GIL, tells Python of its progress, and ends when Python says so or Ctrl-C is
// pressed.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <type_traits>

#include <poise/progress.hpp>

#include "face.hpp"

namespace poise::python {

// Python runs signal handlers on its main thread only, and the library reports progress from any. So, called on the
// main thread, the work is done on another while the main one listens for signals.
class LongCall {
 public:
  // `progress` is None, or is called with (done, total, item): False stops the work, and so does what it raises.
  explicit LongCall(py::object progress = py::none()) : callback_(std::move(progress)) {}

  // What the work hands to the library.
  Progress progress();
  // Should the work end? For work that reports no progress.
  bool stopped() const { return stop_.stop_requested(); }
  // The same for work that takes one.
  std::stop_token stop() const { return stop_.get_token(); }

  // Throws what Python raised meanwhile, else what the work throws. Requires: the GIL.
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
  void listen(const std::function<bool()>& wait);
  void keep_error();  // that Python has set; the first one counts

  py::object callback_;
  std::stop_source stop_;
  py::object raised_[3];  // type, value, traceback
};

}  // namespace poise::python
