#include "io/directory.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file_descriptor.hpp"

namespace poise {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using DirectoryPtr = std::unique_ptr<DIR, CloseDirectory>;

DirectoryPtr open_directory_at(int parent, const char* path, int flags) {
  const int fd = ::openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
  if (fd < 0) return nullptr;
  DirectoryPtr directory(::fdopendir(fd));
  if (directory == nullptr) {
    const int code = errno;
    ::close(fd);
    errno = code;
  }
  return directory;
}

DirectoryPtr open_directory(const std::filesystem::path& path, int flags) {
  return open_directory_at(AT_FDCWD, path.c_str(), flags);
}

// Returns the next entry other than "." and "..". Returns null at the end, with 0 in errno, and on an error, with its
// code in errno.
const dirent* read_entry(DIR* directory) {
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory);
    if (entry == nullptr) return nullptr;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry;
  }
}

bool is_file(DIR* directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_REG;
  struct stat status {};
  return ::fstatat(::dirfd(directory), entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

// Removes the files. Returns true if it removed any: callers then repeat it, since a file system may skip entries while
// others are removed.
bool remove_files(DIR* directory) {
  bool removed = false;
  while (const dirent* entry = read_entry(directory)) {
    if (is_file(directory, *entry) && ::unlinkat(::dirfd(directory), entry->d_name, 0) == 0) removed = true;
  }
  return removed;
}

// Removes the files of the folders, then the folders that are empty. Returns true if it removed any folder.
bool remove_folders(DIR* directory) {
  bool removed = false;
  while (const dirent* entry = read_entry(directory)) {
    if (is_file(directory, *entry)) continue;
    const DirectoryPtr folder = open_directory_at(::dirfd(directory), entry->d_name, O_NOFOLLOW);
    if (folder == nullptr) continue;
    while (remove_files(folder.get())) ::rewinddir(folder.get());
    if (::unlinkat(::dirfd(directory), entry->d_name, AT_REMOVEDIR) == 0) removed = true;
  }
  return removed;
}

}  // namespace

std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path) {
  const DirectoryPtr directory = open_directory(path, 0);
  if (directory == nullptr) throw_system_error("list", path.string());
  std::vector<DirectoryEntry> entries;
  while (const dirent* entry = read_entry(directory.get()))
    entries.push_back({entry->d_name, is_file(directory.get(), *entry)});
  if (errno != 0) throw_system_error("list", path.string());
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

void remove_directory(const std::filesystem::path& path) noexcept {
  const DirectoryPtr directory = open_directory(path, O_NOFOLLOW);
  if (directory == nullptr) return;
  while (remove_files(directory.get())) ::rewinddir(directory.get());
  ::rewinddir(directory.get());
  while (remove_folders(directory.get())) ::rewinddir(directory.get());
  ::rmdir(path.c_str());
}

}  // namespace poise
