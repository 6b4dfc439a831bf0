// Makes the bytes of files that tests write by hand, and converts them to text and to a Source. Uses no code under
// test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/source.hpp>

namespace poise::support {

// Returns the bytes of lines such as "5a 54 45 4e | the rest is a comment".
std::string hex(std::string_view digits);

// Returns a little-endian number of that many bytes.
std::string le(std::uint64_t value, std::size_t bytes);
inline std::string u32le(std::uint32_t value) { return le(value, 4); }
inline std::string u64le(std::uint64_t value) { return le(value, 8); }
std::string padded(std::string file, std::size_t alignment);
template <typename T>
std::string elements(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::byte> to_bytes(std::string_view file);
std::string to_string(const std::vector<std::byte>& file);
// Returns the file in memory. `name` is its path in errors.
SourcePtr source(std::string_view file, std::string name = "test.zt");

}  // namespace poise::support
