// Little-endian numbers at any address.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace poise {

static_assert(std::endian::native == std::endian::little, "Poise maps little-endian files; big-endian hosts are not supported");

template <typename T>
requires std::is_trivially_copyable_v<T> T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
requires std::is_trivially_copyable_v<T>
void store_le(void* to, T value) { std::memcpy(to, &value, sizeof value); }

}  // namespace poise
