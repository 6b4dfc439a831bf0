// Reading and writing a piece of an open file, whatever the system interrupts or cuts short.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace poise {

// Fills `out` from `offset` on. Throws io, naming `path`, when the system cannot read or the file ends before.
void read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path);

// Writes `bytes` from `offset` on. Throws io, naming `path`; some of them may be written then.
void write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path);

// Waits until what was written is on the disk. Throws io, naming `path`.
void sync_file(int fd, const std::string& path);

}  // namespace poise
