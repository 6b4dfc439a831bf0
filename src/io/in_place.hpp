// Bytes of a file that are replaced where they are, so that no crash loses the old ones.
//
// While that happens, a hidden file beside it, the undo file, holds the old bytes and the new ones. It says which
// mixtures of both an interrupted replacement left, so that an undo file that belongs to other bytes changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include <poise/source.hpp>

namespace poise {

// Replaces the bytes at `offset`; they are on the disk afterwards. Throws io; the file has its old bytes then, or they
// come back with roll_back(). Requires: they are all in the file, and a FileLock holds it.
void replace_in_place(const std::filesystem::path& path, std::uint64_t offset, std::span<const std::byte> bytes);

// Whether an interrupted replacement left some old bytes and some new ones. Waits for a replacement that is going on.
bool is_interrupted(const std::filesystem::path& path);

// Gives a file that is half replaced its old bytes again, and removes the undo file. Throws io. Requires: a FileLock
// holds it.
void roll_back(const std::filesystem::path& path);

}  // namespace poise
