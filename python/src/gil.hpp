// Released and Taken: release and acquire Python's lock (the GIL) for a scope.
#pragma once

#include <cxxabi.h>

#include <pybind11/pybind11.h>

namespace poise::python {

// A daemon thread may ask for the lock after the interpreter has ended, and never gets it. Python before 3.14 then ends
// the thread by unwinding its stack, which neither pybind11's guards nor the library survive. Here the thread sleeps
// until the process ends, as it does since Python 3.14.

[[noreturn]] void sleep_for_ever();

// Runs work that acquires the lock. If Python unwinds the stack meanwhile, the thread sleeps for ever. Requires: the
// work owns no Python objects, because unwinding would destroy them without the lock.
template <typename Work>
auto survive_unwinding(Work&& work) {
#ifdef __GLIBCXX__
  try {
    return work();
  } catch (const abi::__forced_unwind&) {  // the process would abort if this handler ended
    sleep_for_ever();
  }
#else
  return work();
#endif
}

// Returns true once the interpreter has begun to end.
bool is_ending();

// Releases the lock for a scope. Requires: this thread has it.
class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

// Acquires the lock for a scope, on any thread, even on one that has it.
class Taken {
 public:
  Taken();
  ~Taken();
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace poise::python
