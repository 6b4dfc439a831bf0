#include "io/file_tail.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include <poise/error.hpp>

#include "io/positioned_io.hpp"
#include "io/system_error.hpp"

namespace poise {

FileTail::FileTail(std::filesystem::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CLOEXEC)) {
  if (!fd_) throw_system_error("open for writing", path_.string());
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw_system_error("look at", path_.string());
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void FileTail::append(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t footer_offset,
                      std::span<const std::byte> footer) {
  std::vector<std::byte> old_footer(footer.size());
  read_at(fd_.get(), size_ - footer.size(), old_footer, path_.string());
  try {
    // A full disk is detected here, before anything changes; file systems that cannot reserve space detect it later.
    const auto length = static_cast<off_t>(footer_offset + footer.size() - size_);
    if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), length) != 0 && errno != EOPNOTSUPP)
      throw_system_error("write", path_.string());
    write(footer_offset, old_footer);
    write(offset, bytes);
    sync();
    write(footer_offset, footer);
    sync();
  } catch (...) {
    undo(footer_offset, old_footer);
    throw;
  }
}

void FileTail::undo(std::uint64_t footer_offset, std::span<const std::byte> old_footer) noexcept {
  try {
    // If the file cannot be truncated, ending with the old footer makes it valid.
    if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) write(footer_offset, old_footer);
    sync();
  } catch (...) {  // reports the first error
  }
}

void FileTail::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_at(fd_.get(), offset, bytes, path_.string());
}

void FileTail::sync() { sync_file(fd_.get(), path_.string()); }

}  // namespace poise
