// Bytes of files, spelled out by hand, and the ways between them, text and a Source. Knows nothing of the code under
// test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/source.hpp>

namespace poise::support {

// "5a 54 45 4e | anything else is a comment" a line.
std::string hex(std::string_view digits);

// Little-endian numbers, and zero bytes up to a multiple.
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
// The file in memory. `name` is its path in errors.
SourcePtr source(std::string_view file, std::string name = "test.zt");

}  // namespace poise::support
