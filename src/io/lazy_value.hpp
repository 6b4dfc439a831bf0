// LazyValue: what is decoded when somebody first wants it, until it is let go.
#pragma once

#include <memory>
#include <mutex>

namespace poise {

// Safe to use from many threads. A reader that holds it when it is let go keeps it; the next get() makes it again.
template <typename T>
class LazyValue {
 public:
  // make() gives a std::shared_ptr<T>; others wait for it.
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
