// Replaces bytes of a file in place. After a crash, roll_back() restores the old bytes.
//
// During the replacement, a hidden file next to the file, the undo file, holds the old and the new bytes. The
// replacement counts as interrupted only if the file has a mixture of these, so a leftover undo file does no harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include <poise/source.hpp>

#include "io/file_descriptor.hpp"

namespace poise {

// Replaces the bytes at `offset` and syncs them. On io errors the file has its old bytes, or roll_back() restores them.
// Requires: the range is inside the file; a FileLock holds the file.
void replace_in_place(const std::filesystem::path& path, std::uint64_t offset, std::span<const std::byte> bytes);

// Returns true if an interrupted replacement has left a mixture of old and new bytes. Waits for a running replacement.
bool is_interrupted(const std::filesystem::path& path);

// Throws invalid_file if an edit of the file was interrupted. Accepts sources in memory. `format` begins the message.
void require_not_interrupted(const Source& source, std::string_view format);

// Restores the old bytes after an interrupted replacement, and removes the undo file. Throws io. Requires: a FileLock
// holds the file.
void roll_back(const std::filesystem::path& path);

// Appends to a file whose last bytes, the footer, locate everything else. The file is valid at every moment: append()
// first copies the old footer to the place of the new one, which leaves a gap, then writes the new bytes into the gap,
// and last writes the new footer over the copy.
class FileTail {
 public:
  // Throws not_found or io when the file cannot be opened for writing.
  explicit FileTail(std::filesystem::path path);

  std::uint64_t size() const { return size_; }

  // Writes `bytes` at `offset` and `footer`, which is as long as the old one, at `footer_offset`. On io errors it
  // truncates the file to its old size, or else lets it end with the old footer. Requires: size() <= offset, offset +
  // bytes.size() <= footer_offset; the footer crosses no multiple of 512.
  void append(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t footer_offset,
              std::span<const std::byte> footer);

 private:
  void undo(std::uint64_t footer_offset, std::span<const std::byte> old_footer) noexcept;
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void sync();

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace poise
