// Released and Taken: Python's lock given back for a while, and taken for a while.
#pragma once

#include <cxxabi.h>

#include <pybind11/pybind11.h>

namespace poise::python {

// A thread may want the lock when the interpreter has ended: a daemon thread that was in a call. It never gets it.
// Python before 3.14 ends that thread by unwinding its stack, which neither pybind11's own guards nor the library
// survive, and the process with them; here it sleeps until the process is gone, as since 3.14.

[[noreturn]] void sleep_for_ever();

// Does what takes the lock, if only between two steps of a Python function that it calls. The work may own nothing of
// Python's: its own objects are destroyed on the way here, without the lock.
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

// Has the interpreter begun to end?
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

// On any thread, whether it has the lock or not.
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
