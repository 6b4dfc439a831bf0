// Lists a directory's entries, and removes a directory of files. Does not use std::filesystem's iterators, because they
// end the program when memory runs out.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

struct DirectoryEntry {
  std::string name;
  bool is_file;  // a regular file, not a link to one
};

// Returns the entries sorted by name, without "." and "..". Throws not_found or io.
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path);

// Removes a directory of files and folders of files. If it holds anything else, removes the files but not the
// directory. Ignores errors, and never follows links.
void remove_directory(const std::filesystem::path& path) noexcept;

// Returns true for the name of a file inside a directory: not empty, not "." or "..", without / and \ and zero bytes. A
// name from a hostile file must not lead elsewhere.
inline bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// Returns true for a relative path of such names, with / between them.
inline bool is_plain_path(std::string_view path) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (!is_plain_file_name(path.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace poise
