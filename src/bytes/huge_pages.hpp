// An allocator for tables that are looked into at random: large ones lie in large pages, so that a look does not wait for the page tables, too.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace poise {

template <typename T>
class HugePages {
 public:
  using value_type = T;

  HugePages() = default;
  template <typename Other>
  HugePages(const HugePages<Other>&) {}

  T* allocate(std::size_t count) {
    if (count > kMostBytes / sizeof(T)) throw std::bad_array_new_length();
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes, std::align_val_t(alignof(T))));
    void* const memory = ::operator new(bytes, std::align_val_t(kPage));
    ::madvise(memory, bytes / kPage * kPage, MADV_HUGEPAGE);  // a wish: without it everything is as before, but slower
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, std::align_val_t(count * sizeof(T) < kPage ? alignof(T) : kPage)); }

  friend bool operator==(const HugePages&, const HugePages&) { return true; }

 private:
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  static constexpr std::size_t kMostBytes = PTRDIFF_MAX;
};

}  // namespace poise
