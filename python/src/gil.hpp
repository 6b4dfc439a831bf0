// Released and Taken: release and take Python's lock for a scope.
#pragma once

#include <cxxabi.h>

#include <pybind11/pybind11.h>

namespace poise::python {

// A thread may want the lock after the interpreter has ended: a daemon thread in a call. It never gets it. Python
// before 3.14 ends that thread by unwinding its stack, which neither pybind11's guards nor the library survive; here it
// sleeps until the process ends, as since 3.14.

[[noreturn]] void sleep_for_ever();

// Runs work that takes the lock, perhaps between two steps of a Python function. The work may not own Python objects:
// its own objects are destroyed during unwinding, without the lock.
template <typename Work>
auto surviving(Work&& work) {
#ifdef __GLIBCXX__
  try {
    return work();
  } catch (const abi::__forced_unwind&) {  // which may be caught, as long as it does not end here
    sleep_for_ever();
  }
#else
  return work();
#endif
}

// Returns true once the interpreter has begun to end.
bool is_ending();

class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

// On any thread, with or without the lock.
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
