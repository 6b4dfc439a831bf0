#include "long_call.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace poise::python {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

bool is_main_thread() {
  const py::object main = py::module_::import("threading").attr("main_thread")();
  return main.attr("ident").cast<unsigned long>() == PyThread_get_thread_ident();
}

}  // namespace

void LongCall::keep_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  stop_.request_stop();
  py::object fetched[] = {py::reinterpret_steal<py::object>(type), py::reinterpret_steal<py::object>(value),
                          py::reinterpret_steal<py::object>(trace)};
  if (raised_[0]) return;
  for (std::size_t i = 0; i < 3; ++i) raised_[i] = std::move(fetched[i]);
}

Progress LongCall::make_progress() {
  return [this](const ProgressEvent& event) {
    if (is_stopped()) return false;
    if (callback_.is_none() || is_ending()) return true;
    const Taken taken;
    try {
      const py::tuple arguments = py::make_tuple(event.done, event.total, make_text(event.item));
      // survive_unwinding() requires work that owns no Python objects, so it calls the C API.
      PyObject* const called = survive_unwinding([&] { return PyObject_CallObject(callback_.ptr(), arguments.ptr()); });
      if (called == nullptr) throw py::error_already_set();
      const auto answer = py::reinterpret_steal<py::object>(called);
      if (is_boolean(answer) && PyObject_IsTrue(answer.ptr()) == 0) stop_.request_stop();
    } catch (py::error_already_set& error) {
      error.restore();
      keep_error();
    }
    return !is_stopped();
  };
}

void LongCall::execute(const std::function<void()>& work) {
  std::exception_ptr failure;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  const bool listens = is_main_thread();
  {
    const Released released;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::thread worker;
    if (listens) {
      try {
        worker = std::thread([&] {
          guarded();
          const std::lock_guard lock(mutex);
          done = true;
          changed.notify_one();
        });
      } catch (const std::system_error&) {  // no thread is available: the work runs here, without signals
      }
    }
    if (!worker.joinable()) {
      guarded();
    } else {
      watch_for_interrupts([&] {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, kBetweenLooks, [&] { return done; });
      });
      worker.join();
    }
  }
  if (raised_[0]) {
    PyErr_Restore(raised_[0].release().ptr(), raised_[1].release().ptr(), raised_[2].release().ptr());
    throw py::error_already_set();
  }
  if (failure) std::rethrow_exception(failure);
}

void LongCall::watch_for_interrupts(const std::function<bool()>& wait) {
  while (!wait()) {
    const Taken taken;
    if (PyErr_CheckSignals() != 0) keep_error();
  }
}

}  // namespace poise::python
