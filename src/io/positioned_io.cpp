#include "io/positioned_io.hpp"

#include <unistd.h>

#include <poise/error.hpp>

#include "io/system_error.hpp"

namespace poise {

void read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("read", path);
    if (got == 0) throw Error(ErrorKind::io, "the file ends here now; it was longer when it was opened", path, offset);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error("write", path);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void sync_file(int fd, const std::string& path) {
  if (::fsync(fd) != 0) throw_system_error("write", path);
}

}  // namespace poise
