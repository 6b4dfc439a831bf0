// free_space: how much a file system can still take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace poise {

struct FreeSpace {
  std::uint64_t bytes = 0;
  bool shares_copies = false;  // bytes that are copied from one of its files to another may take none
};

// Of the file system on which a file at this path would be. Nothing where that is not known, or where zeros and text
// take less than they have (file systems that compress, or are on other machines). Never less than there is.
std::optional<FreeSpace> free_space(const std::filesystem::path& path);

}  // namespace poise
