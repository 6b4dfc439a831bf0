// Reads and writes a range of an open file; continues after interrupted and short calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace poise {

// Fills `out` from `offset` on. Throws io, naming `path`, on errors and when the file is too short.
void read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path);

// Writes `bytes` from `offset` on. Throws io, naming `path`, perhaps after writing some of them.
void write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path);

// Waits until the written bytes are on the disk. Throws io, naming `path`.
void sync_file(int fd, const std::string& path);

}  // namespace poise
