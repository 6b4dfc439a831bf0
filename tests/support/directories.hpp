// Where tests find files: the project itself, and the data shared beside it.
#pragma once

#include <filesystem>
#include <string>

namespace poise {

// The root of the project's tree.
std::filesystem::path source_directory();

// The directory of real files for tests. It may be absent: a test that needs it skips.
std::filesystem::path shared_directory();

namespace support {

// An empty directory of its own, which goes away with this.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace support
}  // namespace poise
