// CBOR items spelled out by hand, by a notation that knows nothing of Poise's encoder.
//
//   map({{text("version"), text("1.1.0")}, {text("objects"), map({})}})
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poise::support {

// Heads are as short as they can be; the entries of a map keep the order given.
std::string number(std::uint64_t value);
std::string negative(std::uint64_t minus_one_minus_value);
std::string text(std::string_view value);
std::string bytes(std::string_view value);
std::string array(const std::vector<std::string>& items);
std::string map(const std::vector<std::pair<std::string, std::string>>& entries);
// A head with its argument in 0, 1, 2, 4 or 8 bytes.
std::string long_head(unsigned major, std::uint64_t argument, unsigned argument_bytes);

}  // namespace poise::support
