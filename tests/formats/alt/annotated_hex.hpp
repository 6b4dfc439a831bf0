// Golden files as text: lines of "offset | hexadecimal bytes | meaning", and comments behind #.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace poise {

// The bytes of tests/formats/alt/<name>. Throws std::runtime_error when an offset does not fit what stands before it.
std::vector<std::byte> read_annotated_hex(const std::string& name);

}  // namespace poise
