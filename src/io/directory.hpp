// Lists a directory's entries, and removes a directory of files. Does not use std::filesystem's iterators, because they
// end the program when memory runs out.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

struct DirectoryEntry {
  std::string name;
  bool is_file;  // a regular file, not a link to one
};

// Returns the entries sorted by name, without "." and "..". Throws io.
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path);

// Removes a directory of files and folders of files. Leaves it in place if it holds anything else; never follows links.
// Allocates nothing.
void remove_directory(const std::filesystem::path& path) noexcept;

// Returns true for the name of a file inside a directory: not empty, not "." or "..", without / and \ and zero bytes. A
// name from a hostile file must not lead elsewhere.
inline bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace poise
