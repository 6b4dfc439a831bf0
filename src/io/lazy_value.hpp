// LazyValue: a value that is made on first use and can be released.
#pragma once

#include <memory>
#include <mutex>

namespace poise {

// Thread-safe. A reader keeps a value that is released meanwhile; the next get() makes a new one.
template <typename T>
class LazyValue {
 public:
  // make() returns a std::shared_ptr<T>; other threads wait for it.
  template <typename Make>
  std::shared_ptr<T> get(const Make& make) const {
    const std::scoped_lock lock(mutex_);
    if (!value_) value_ = make();
    return value_;
  }

  void release() const {
    const std::scoped_lock lock(mutex_);
    value_.reset();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<T> value_;
};

}  // namespace poise
