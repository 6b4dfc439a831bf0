// Boxed: an optional value that takes only a pointer when absent. For rare fields of many objects.
#pragma once

#include <memory>
#include <optional>
#include <utility>

namespace poise {

// The part of std::optional's interface that is needed, with the same meaning: copies are values of their own.
template <typename T>
class Boxed {
 public:
  Boxed() noexcept = default;
  Boxed(std::nullopt_t) noexcept {}
  Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Boxed(const Boxed& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Boxed(Boxed&&) noexcept = default;
  ~Boxed() = default;
  Boxed& operator=(const Boxed& other) {
    if (this != &other) *this = Boxed(other);
    return *this;
  }
  Boxed& operator=(Boxed&&) noexcept = default;

  bool has_value() const { return value_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  // Require: has_value().
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  void reset() { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace poise
