// Loads and stores little-endian numbers at any address, and loads big-endian ones.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace poise {

static_assert(std::endian::native == std::endian::little,
              "Poise maps little-endian files; big-endian hosts are not supported");
static_assert(sizeof(std::size_t) == sizeof(std::uint64_t),
              "Poise reads files of more than 4 GiB; 32-bit hosts are not supported");

template <typename T>
requires std::is_trivially_copyable_v<T> T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
requires std::is_trivially_copyable_v<T> T load_be(const void* from) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), from, sizeof(T));
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

template <typename T>
requires std::is_trivially_copyable_v<T>
void store_le(void* to, T value) { std::memcpy(to, &value, sizeof value); }

}  // namespace poise
