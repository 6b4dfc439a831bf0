// Where tests find files: the project itself, the data shared next to it, and their own directories.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

// A file of these bytes, in a directory that is made where it is not there.
void put(const std::filesystem::path& file, std::string_view bytes);
// All bytes of a file; empty if it is missing.
std::string contents(const std::filesystem::path& file);
// The entries of a directory, sorted.
std::vector<std::string> names_in(const std::filesystem::path& directory);

}  // namespace support
}  // namespace poise
