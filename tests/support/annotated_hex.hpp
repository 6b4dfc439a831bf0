// Golden files as text: lines of "offset | hexadecimal bytes | meaning", and comments after #.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace poise::support {

// Returns the bytes of tests/<name>. Throws std::runtime_error for an offset that is not the number of bytes before it.
std::vector<std::byte> read_annotated_hex(const std::string& name);

}  // namespace poise::support
