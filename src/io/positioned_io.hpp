// Reading a piece of an open file, whatever the system interrupts or cuts short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace poise {

// Fills `out` from `offset` on. Throws io, naming `path`, when the system cannot read or the file ends before.
void read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path);

}  // namespace poise
