// Locks a file for one writer at a time.
#pragma once

#include <filesystem>

#include "io/file_descriptor.hpp"

namespace poise {

// Waits until no other FileLock, of this process or another, holds the file of this name; holds it until destroyed. If
// the file is replaced meanwhile, locks the new one. Does not lock special or missing files, or on file systems without
// locks. Readers are not blocked.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);

 private:
  FileDescriptor fd_;
};

}  // namespace poise
