// One writer of a file at a time.
#pragma once

#include <filesystem>

#include "io/file_descriptor.hpp"

namespace poise {

// Waits until no other FileLock, of this process or another, holds the file of this name, and holds it until destroyed.
// A file that was replaced meanwhile is given up for the new one. What is no regular file, or not there, or on a file
// system without locks, is not held. Readers are not kept out.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);

 private:
  FileDescriptor fd_;
};

}  // namespace poise
