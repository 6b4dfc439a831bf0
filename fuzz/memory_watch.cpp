// Replaces the global operators new and delete, which allocate the library's memory. The limits of C libraries and
// libFuzzer's -malloc_limit_mb bound the rest.
#include "memory_watch.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace poise::fuzz {
namespace {

std::atomic<std::int64_t> held = 0;
std::atomic<std::int64_t> most = INT64_MAX;  // the number of held bytes that is allowed

void* count_block(void* block) {
  if (block == nullptr) return nullptr;
  const auto size = static_cast<std::int64_t>(malloc_usable_size(block));
  const std::int64_t now = held.fetch_add(size) + size;
  if (now > most.load()) {
    most = INT64_MAX;  // the report may allocate
    std::fprintf(stderr, "FINDING: an allocation of %lld bytes is more than the input justifies\n",
                 static_cast<long long>(size));
    std::abort();
  }
  return block;
}

void* throw_if_null(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void release(void* block) {
  if (block == nullptr) return;
  held -= static_cast<std::int64_t>(malloc_usable_size(block));
  std::free(block);
}

}  // namespace

MemoryWatch::MemoryWatch(std::uint64_t limit) { most = held + static_cast<std::int64_t>(limit); }
MemoryWatch::~MemoryWatch() { most = INT64_MAX; }

}  // namespace poise::fuzz

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return poise::fuzz::count_block(std::malloc(size == 0 ? 1 : size));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const auto to = static_cast<std::size_t>(alignment);
  return poise::fuzz::count_block(std::aligned_alloc(to, (size + to) / to * to));
}
void* operator new(std::size_t size) { return poise::fuzz::throw_if_null(operator new(size, std::nothrow)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return poise::fuzz::throw_if_null(operator new(size, alignment, std::nothrow));
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return operator new(size, std::nothrow); }
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return operator new(size, alignment, std::nothrow);
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return operator new(size, alignment); }
void operator delete(void* block, const std::nothrow_t&) noexcept { poise::fuzz::release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { poise::fuzz::release(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { poise::fuzz::release(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept { poise::fuzz::release(block); }
void operator delete(void* block) noexcept { poise::fuzz::release(block); }
void operator delete[](void* block) noexcept { poise::fuzz::release(block); }
void operator delete(void* block, std::size_t) noexcept { poise::fuzz::release(block); }
void operator delete[](void* block, std::size_t) noexcept { poise::fuzz::release(block); }
void operator delete(void* block, std::align_val_t) noexcept { poise::fuzz::release(block); }
void operator delete[](void* block, std::align_val_t) noexcept { poise::fuzz::release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { poise::fuzz::release(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { poise::fuzz::release(block); }
