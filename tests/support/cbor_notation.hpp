// CBOR items in a notation for tests, which uses no code of Poise's encoder.
//
//   map({{text("version"), text("1.1.0")}, {text("objects"), map({})}})
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poise::support {

// Return items. Heads are as short as they can be; the entries of a map keep their order.
std::string number(std::uint64_t value);
std::string negative(std::uint64_t minus_one_minus_value);
std::string text(std::string_view value);
std::string bytes(std::string_view value);
std::string array(const std::vector<std::string>& items);
std::string map(const std::vector<std::pair<std::string, std::string>>& entries);
// Returns a head with its argument in 0, 1, 2, 4 or 8 bytes.
std::string long_head(unsigned major, std::uint64_t argument, unsigned argument_bytes);

}  // namespace poise::support
