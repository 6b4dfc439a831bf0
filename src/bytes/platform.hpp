// Reads the features that an x86 processor reports, and allocates memory in large pages.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include <sys/mman.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace poise {

// Holds what x86's instruction CPUID reports: zeros for leaves that the processor lacks, and on processors of other
// kinds.
struct Cpuid {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
#if defined(__x86_64__)
  Cpuid(unsigned leaf, unsigned part) { __get_cpuid_count(leaf, part, &eax, &ebx, &ecx, &edx); }
#else
  Cpuid(unsigned, unsigned) {}
#endif
};

// Large pages save TLB misses in tables with random access, and page faults in long lists.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Asks the system for large pages. It may refuse, which only costs speed. Memory that is never written takes no page.
inline void advise_huge_pages(void* memory, std::size_t bytes) {
  void* front = memory;
  std::size_t left = bytes;
  if (std::align(kHugePage, kHugePage, front, left) != nullptr)
    ::madvise(front, left / kHugePage * kHugePage, MADV_HUGEPAGE);
}

// Asks for large pages for the capacity of a std::vector or std::string.
template <typename List>
void advise_huge_pages(List& list) {
  advise_huge_pages(list.data(), list.capacity() * sizeof(typename List::value_type));
}

// Allocates memory that begins at a cache line. Asks for large pages for 2 MiB or more.
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
    if (bytes < kHugePage) return static_cast<T*>(::operator new(bytes, std::align_val_t(kLine)));
    void* const memory = ::operator new(bytes, std::align_val_t(kHugePage));
    advise_huge_pages(memory, bytes);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete(memory, std::align_val_t(count * sizeof(T) < kHugePage ? kLine : kHugePage));
  }

  friend bool operator==(const HugePages&, const HugePages&) { return true; }

 private:
  static constexpr std::size_t kLine = 64;
  static_assert(alignof(T) <= kLine);
  static constexpr std::size_t kMostBytes = PTRDIFF_MAX;
};

}  // namespace poise
