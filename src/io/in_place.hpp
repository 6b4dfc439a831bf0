// Replaces bytes of a file in place, so that no crash loses the old ones.
//
// Meanwhile a hidden file next to it, the undo file, holds the old and the new bytes. Only a mixture of both counts as
// an interrupted replacement, so an undo file that belongs to other bytes changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include <poise/source.hpp>

namespace poise {

// Replaces the bytes at `offset` and syncs them. On io errors the file has its old bytes, or roll_back() restores them.
// Requires: the range is inside the file, and a FileLock holds it.
void replace_in_place(const std::filesystem::path& path, std::uint64_t offset, std::span<const std::byte> bytes);

// True after an interrupted replacement left some old and some new bytes. Waits for a running replacement.
bool is_interrupted(const std::filesystem::path& path);

// Throws invalid_file if an edit of the file was interrupted. Sources in memory pass. `format` begins the message.
void require_not_interrupted(const Source& source, std::string_view format);

// Restores the old bytes after an interrupted replacement, and removes the undo file. Throws io. Requires: a FileLock
// holds the file.
void roll_back(const std::filesystem::path& path);

}  // namespace poise
