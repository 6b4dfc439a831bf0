// Where tests find files: the project itself, the data shared next to it, and their own directories.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

// Returns the root of the project's tree.
std::filesystem::path source_directory();

// Returns the directory of real files for tests. It may be absent: a test that needs it skips.
std::filesystem::path shared_directory();

namespace support {

// Makes an empty directory, which the destructor removes.
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

// Writes a file of these bytes; makes its directory if there is none.
void put(const std::filesystem::path& file, std::string_view bytes);
// Returns all bytes of a file; empty if it is missing.
std::string contents(const std::filesystem::path& file);
// Returns the names of a directory's entries, sorted.
std::vector<std::string> names_in(const std::filesystem::path& directory);

}  // namespace support
}  // namespace poise
