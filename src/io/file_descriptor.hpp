// A FileDescriptor owns an open file and closes it.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <poise/error.hpp>
#include <poise/source.hpp>

namespace poise {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// Throws the operating system's error as an Error: "cannot open: No such file or directory". Its kind is not_found for
// ENOENT and ENOTDIR, else io.
[[noreturn]] inline void throw_system_error(std::string_view doing, const std::string& path, int code = errno) {
  const ErrorKind kind = code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io;
  throw Error(kind, "cannot " + std::string(doing) + ": " + std::generic_category().message(code), path);
}

// Returns the first `size` bytes of a file, mapped if possible, else read. Requires: the file has them, and they do not
// change. Throws io.
SourcePtr make_file_source(const FileDescriptor& file, std::string name, std::uint64_t size);

// Fills `out` from `offset` on; continues after interrupted and short calls, as write_at() does. Throws io, naming
// `path`, on errors and when the file is too short.
void read_at(int fd, std::uint64_t offset, std::span<std::byte> out, const std::string& path);

// Writes `bytes` from `offset` on. Throws io, naming `path`, perhaps after writing some of them.
void write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path);

// Waits until the written bytes are on the disk. Throws io, naming `path`.
void sync_file(int fd, const std::string& path);

// Waits until the entries of a directory are on the disk. Ignores a directory that cannot be synced.
void sync_directory(const std::filesystem::path& directory);

// Locks a file for one writer at a time, until destroyed. First waits until no other FileLock, of any process, holds
// the file with this name. If the file is replaced meanwhile, locks the new one. Locks nothing if the file is special
// or missing, or if the file system has no locks. Does not block readers.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);

 private:
  FileDescriptor fd_;
};

// Detects that a file has changed.
class FileStamp {
 public:
  // Records the size and the time of the last change of a source's file. Throws io.
  explicit FileStamp(SourcePtr source);
  // Throws io if the size or the time has changed.
  void require_unchanged() const;
  const Source* source() const { return source_.get(); }

 private:
  struct State {
    std::int64_t size = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  State read_state() const;

  SourcePtr source_;
  State before_;
};

// Stands for a range of bytes between holes. Holes are ranges that were never written: they read as zeros and use no
// space on the disk.
struct WrittenRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Returns the first range from `offset` on that is not in a hole; an empty range at the source's end if there is none.
// Returns all bytes from `offset` on if the source has no descriptor, or its file system does not report holes.
// Requires: offset <= size().
WrittenRange find_written_range(const Source& source, std::uint64_t offset);

struct FreeSpace {
  std::uint64_t bytes = 0;
  bool shares_copies = false;  // copies between files of this file system may share blocks
};

// Measures the free space of the file system for a file at this path. Returns std::nullopt if it is unknown, or if data
// may need less space than their size (on file systems that compress, or are remote). The result is never too small.
std::optional<FreeSpace> measure_free_space(const std::filesystem::path& path);

}  // namespace poise
