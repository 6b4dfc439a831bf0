// Defines containers whose memory begins at a cache line, because a SIMD load across the end of a line reads two lines.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include <oneapi/tbb/cache_aligned_allocator.h>

namespace poise {

template <class T>
using AlignedVector = std::vector<T, tbb::cache_aligned_allocator<T>>;
using AlignedFloats = AlignedVector<float>;

// Leaves new elements of a vector uninitialised.
template <class T>
struct UninitializedAllocator : tbb::cache_aligned_allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };

  using tbb::cache_aligned_allocator<T>::cache_aligned_allocator;
  template <class U>
  void construct(U* element) noexcept {
    ::new (static_cast<void*>(element)) U;
  }
};
using UninitializedBytes = std::vector<std::byte, UninitializedAllocator<std::byte>>;

}  // namespace poise
