// SmallVector: a vector that stores its first elements inline, so that a short one allocates nothing.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <utility>

namespace poise {

// The part of std::vector's interface that shapes and parts need, with the same guarantees; except that moving a vector
// of at most `kInside` elements invalidates iterators and references. At most 2^32 - 1 elements.
template <typename T, std::size_t kInside>
class SmallVector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() noexcept {}
  SmallVector(std::initializer_list<T> items) : SmallVector(items.begin(), items.end()) {}
  template <std::input_iterator Iterator>
  SmallVector(Iterator first, Iterator last) {
    append(first, last);
  }
  explicit SmallVector(std::size_t count, const T& value = T()) { resize(count, value); }
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept { take(other); }
  ~SmallVector() { release(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) *this = SmallVector(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  T* data() { return is_inside() ? inside() : outside_; }
  const T* data() const { return is_inside() ? inside() : outside_; }
  iterator begin() { return data(); }
  iterator end() { return data() + size_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  // Throws std::out_of_range.
  const T& at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("SmallVector::at");
    return data()[i];
  }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void reserve(std::size_t capacity) {
    if (capacity > capacity_) move_to(capacity);
  }

  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ < capacity_) {
      std::construct_at(data() + size_, std::forward<Arguments>(arguments)...);
    } else {
      T made(std::forward<Arguments>(arguments)...);  // before anything that it may be made from moves
      move_to(std::max<std::size_t>(2 * std::size_t{capacity_}, 2));
      std::construct_at(data() + size_, std::move(made));
    }
    ++size_;
    return back();
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  void pop_back() { std::destroy_at(data() + --size_); }

  template <std::input_iterator Iterator>
  void append(Iterator first, Iterator last) {
    if constexpr (std::forward_iterator<Iterator>)
      reserve(size_ + static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) emplace_back(*first);
  }

  void clear() { shrink_to(0); }
  void resize(std::size_t count, const T& value = T()) {
    if (count <= size_) return shrink_to(count);
    const T item = value;  // before it may move
    reserve(count);
    while (size_ < count) emplace_back(item);
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool is_inside() const { return capacity_ == kInside; }
  T* inside() { return reinterpret_cast<T*>(room_); }
  const T* inside() const { return reinterpret_cast<const T*>(room_); }

  void shrink_to(std::size_t count) {
    std::destroy(data() + count, data() + size_);
    size_ = static_cast<std::uint32_t>(count);
  }

  // Requires: capacity > capacity_.
  void move_to(std::size_t capacity) {
    if (capacity > UINT32_MAX) throw std::length_error("SmallVector");
    T* const memory = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), memory);
    const auto size = size_;
    release();
    outside_ = memory;
    capacity_ = static_cast<std::uint32_t>(capacity);
    size_ = size;
  }

  // Leaves it empty. Requires: this is empty and inside.
  void take(SmallVector& other) noexcept {
    if (other.is_inside()) {
      std::uninitialized_move(other.begin(), other.end(), inside());
      size_ = other.size_;
      other.shrink_to(0);
    } else {
      outside_ = other.outside_;
      size_ = std::exchange(other.size_, 0U);
      capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(kInside));
    }
  }

  void release() noexcept {
    std::destroy(begin(), end());
    if (!is_inside()) std::allocator<T>().deallocate(outside_, capacity_);
    size_ = 0;
    capacity_ = kInside;
  }

  static_assert(kInside > 0);
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = kInside;  // kInside: the elements are in room_
  union {
    T* outside_;
    alignas(T) std::byte room_[kInside * sizeof(T)];
  };
};

}  // namespace poise
