// FileTail: a file that gets a new end, so that at every moment it is whole with the old end or with the new one.
//
// For formats whose last bytes, the footer, say where everything else is. It writes the old footer to the new one's
// place (the file is what it was, with a gap), then the new bytes into the gap, and last the new footer over the old
// one's copy.
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

  // Puts `bytes` at `offset` and `footer`, which has the length of the old one, at `footer_offset`. Throws io, and then
  // the file has its old size and end. Requires: size() <= offset, offset + bytes.size() <= footer_offset; the footer
  // crosses no multiple of 512.
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
