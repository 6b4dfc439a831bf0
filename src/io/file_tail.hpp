// FileTail: replaces the end of a file so that the file is valid at every moment, with the old end or the new one.
//
// For formats whose last bytes, the footer, locate everything else. It copies the old footer to the place of the new
// one (the file is as before, with a gap), writes the new bytes into the gap, and then the new footer over the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "io/file_descriptor.hpp"

namespace poise {

class FileTail {
 public:
  // Throws not_found or io when the file cannot be opened for writing.
  explicit FileTail(std::filesystem::path path);

  std::uint64_t size() const { return size_; }

  // Writes `bytes` at `offset` and `footer`, which is as long as the old one, at `footer_offset`. On io errors the file
  // keeps its old size and end. Requires: size() <= offset, offset + bytes.size() <= footer_offset; the footer crosses
  // no multiple of 512.
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
