// Computes with numbers from files. On overflow, the checked_ functions return std::nullopt, and saturating_add()
// returns the largest number.
#pragma once

#include <cstdint>
#include <optional>

namespace poise {

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) { return checked_add(a, b).value_or(UINT64_MAX); }

inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Returns value / divisor, rounded up. Requires: divisor > 0.
constexpr std::uint64_t ceil_div(std::uint64_t value, std::uint64_t divisor) {
  return value / divisor + (value % divisor == 0 ? 0 : 1);
}

// Returns the smallest multiple of `alignment` that is >= value. Requires: alignment is a power of two.
inline std::optional<std::uint64_t> checked_align(std::uint64_t value, std::uint64_t alignment) {
  const auto sum = checked_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

}  // namespace poise
