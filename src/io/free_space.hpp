// free_space: how much a file system can still hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace poise {

struct FreeSpace {
  std::uint64_t bytes = 0;
  bool shares_copies = false;  // copies between its files may share blocks
};

// For the file system on which a file at this path would be. Nothing where that is not known, or where data may take
// less space than its size (file systems that compress, or are remote). Never too small.
std::optional<FreeSpace> free_space(const std::filesystem::path& path);

}  // namespace poise
