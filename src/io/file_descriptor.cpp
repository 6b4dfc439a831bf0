#include "io/file_descriptor.hpp"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "bytes/checked.hpp"

namespace poise {

void read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("read", path);
    if (got == 0) throw Error(ErrorKind::io, "the file ends here, but it was longer when it was opened", path, offset);
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

void sync_directory(const std::filesystem::path& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

void sync_file(int fd, const std::string& path) {
  if (::fsync(fd) != 0) throw_system_error("write", path);
}

FileLock::FileLock(const std::filesystem::path& path) {
  while (true) {
    constexpr int kFlags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    fd_ = FileDescriptor(::open(path.c_str(), O_RDWR | kFlags));
    if (!fd_) fd_ = FileDescriptor(::open(path.c_str(), O_RDONLY | kFlags));
    struct stat held {};
    if (!fd_ || ::fstat(fd_.get(), &held) != 0 || !S_ISREG(held.st_mode)) return;
    int locked = 0;
    do locked = ::flock(fd_.get(), LOCK_EX);
    while (locked != 0 && errno == EINTR);
    struct stat named {};
    const bool still_there =
        ::stat(path.c_str(), &named) == 0 && named.st_dev == held.st_dev && named.st_ino == held.st_ino;
    if (locked != 0 || still_there) return;
  }
}

FileStamp::FileStamp(SourcePtr source) : source_(std::move(source)), before_(read_state()) {}

// Returns the state of the file. Sources without a descriptor all have the same state: those in memory do not change,
// and those on servers check each answer.
FileStamp::State FileStamp::read_state() const {
  struct stat status {};
  if (source_->descriptor() < 0) return {};
  if (::fstat(source_->descriptor(), &status) != 0) throw_system_error("stat", source_->name());
  return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

void FileStamp::require_unchanged() const {
  if (read_state() != before_) throw Error(ErrorKind::io, "the file changed while it was read", source_->name());
}

WrittenRange find_written_range(const Source& source, std::uint64_t offset) {
  const WrittenRange all{offset, source.size()};
  if (source.descriptor() < 0 || offset >= source.size()) return all;
  // Reads never use the descriptor's position, so it may change.
  const off_t begin = ::lseek(source.descriptor(), static_cast<off_t>(offset), SEEK_DATA);
  if (begin < 0) return errno == ENXIO ? WrittenRange{source.size(), source.size()} : all;
  const off_t end = ::lseek(source.descriptor(), begin, SEEK_HOLE);
  return {std::min(static_cast<std::uint64_t>(begin), source.size()),
          end < 0 ? source.size() : std::min(static_cast<std::uint64_t>(end), source.size())};
}

namespace {

// On these file systems, a file takes as much space as it has bytes.
constexpr std::array<std::uint32_t, 4> kPlain = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC};

}  // namespace

std::optional<FreeSpace> measure_free_space(const std::filesystem::path& path) {
  const std::string directory = path.has_parent_path() ? path.parent_path().string() : ".";
  struct statfs status {};
  // A tmpfs without a limit has no blocks.
  if (::statfs(directory.c_str(), &status) != 0 || status.f_blocks == 0) return std::nullopt;
  const auto type = static_cast<std::uint32_t>(status.f_type);
  if (std::ranges::find(kPlain, type) == kPlain.end()) return std::nullopt;
  // f_bfree includes blocks that are reserved for the superuser.
  const auto bytes =
      checked_mul(status.f_bfree, static_cast<std::uint64_t>(status.f_frsize != 0 ? status.f_frsize : status.f_bsize));
  if (!bytes) return std::nullopt;
  return FreeSpace{*bytes, type == XFS_SUPER_MAGIC};
}

}  // namespace poise
