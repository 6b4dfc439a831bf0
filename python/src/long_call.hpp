// LongCall: runs work without the GIL, reports progress to Python, and stops when Python or Ctrl-C asks for it.
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

// Python runs signal handlers on its main thread only, and the library reports progress from any. So a call on the main
// thread runs the work on another one and handles signals meanwhile.
class LongCall {
 public:
  // `progress` is None, or is called with (done, total, item): False or an exception stops the work.
  explicit LongCall(py::object progress = py::none()) : callback_(std::move(progress)) {}

  // Returns the callback for the library.
  Progress progress();
  // Returns true when the work should end. For work that reports no progress.
  bool stopped() const { return stop_.stop_requested(); }
  // Returns the same as a token.
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
  void keep_error();  // Python's current one; the first counts

  py::object callback_;
  std::stop_source stop_;
  py::object raised_[3];  // type, value, traceback
};

// Encodes texts without the GIL. Few bytes are encoded before anyone could stop it.
template <typename Work>
auto run_encoding(std::size_t bytes, Work&& work) {
  constexpr std::size_t kFew = 1 << 19;
  if (bytes < kFew) {
    const Released released;
    return work();
  }
  LongCall call;
  return call.run([&, stop = call.stop()] {
    const EncodingStop stoppable(stop);
    return work();
  });
}

}  // namespace poise::python
