// Lists a directory's entries, and removes a directory of files. std::filesystem's iterators end the program when
// memory runs out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace poise {

struct DirectoryEntry {
  std::string name;
  bool is_file;  // a regular file, not a link to one
};

// Sorted by name, without "." and "..". Throws io.
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path);

// Removes a directory of files and folders of files. Leaves it in place if it holds anything else; never follows links.
// Allocates nothing.
void remove_directory(const std::filesystem::path& path) noexcept;

}  // namespace poise
