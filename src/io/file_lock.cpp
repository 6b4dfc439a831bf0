#include "io/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace poise {

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

}  // namespace poise
