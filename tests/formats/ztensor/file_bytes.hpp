// Bytes of zTensor files, spelled out by hand: a CBOR notation that knows nothing of Poise's encoder.
//
//   map({{text("version"), text("1.1.0")}, {text("objects"), map({})}})
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/source.hpp>

namespace poise::ztensor_test {

// "5a 54 45 4e | anything else is a comment" a line.
std::string hex(std::string_view digits);

// CBOR items, heads as short as they can be; the entries of a map stand in the order given.
std::string number(std::uint64_t value);
std::string negative(std::uint64_t minus_one_minus_value);
std::string text(std::string_view value);
std::string bytes(std::string_view value);
std::string array(const std::vector<std::string>& items);
std::string map(const std::vector<std::pair<std::string, std::string>>& entries);
// A head with its argument in 0, 1, 2, 4 or 8 bytes.
std::string long_head(unsigned major, std::uint64_t argument, unsigned argument_bytes);

// Little-endian numbers, and zero bytes up to a multiple.
std::string u32le(std::uint32_t value);
std::string u64le(std::uint64_t value);
std::string padded(std::string file, std::size_t alignment);
template <typename T>
std::string elements(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::byte> to_bytes(std::string_view file);
std::string to_string(const std::vector<std::byte>& file);
SourcePtr source(std::string_view file, std::string name = "test.zt");

}  // namespace poise::ztensor_test
