#include "gil.hpp"

#include <chrono>
#include <thread>

namespace poise::python {

void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

Released::Released() : state_(PyEval_SaveThread()) {}

Released::~Released() {
  survive_unwinding([&] { PyEval_RestoreThread(state_); });
}

Taken::Taken() {
  if (is_ending() && PyGILState_GetThisThreadState() == nullptr) sleep_for_ever();
  state_ = survive_unwinding([] { return PyGILState_Ensure(); });
}

Taken::~Taken() { PyGILState_Release(state_); }

}  // namespace poise::python
