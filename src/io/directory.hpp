// A directory's entries, and how a directory of files is removed. std::filesystem's iterators end the program when
// memory runs out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace poise {

struct DirectoryEntry {
  std::string name;
  bool is_file;  // a regular file, no link to one
};

// Sorted by name, without "." and "..". Throws io.
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path);

// Removes a directory of files and folders of files. One that holds anything else stays, with that; so does what a link
// leads to.
// Takes no memory.
void remove_directory(const std::filesystem::path& path) noexcept;

}  // namespace poise
