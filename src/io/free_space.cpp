#include "io/free_space.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>

#include "bytes/checked.hpp"

namespace poise {
namespace {

// File systems on which files take as much space as was written.
constexpr std::array<std::uint32_t, 4> kPlain = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC};

}  // namespace

std::optional<FreeSpace> free_space(const std::filesystem::path& path) {
  const std::string directory = path.has_parent_path() ? path.parent_path().string() : ".";
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0 || status.f_blocks == 0)
    return std::nullopt;  // a tmpfs without a limit has no blocks
  const auto type = static_cast<std::uint32_t>(status.f_type);
  if (std::ranges::find(kPlain, type) == kPlain.end()) return std::nullopt;
  const auto bytes =
      checked_mul(status.f_bfree,
                  static_cast<std::uint64_t>(status.f_frsize != 0 ? status.f_frsize
                                                                  : status.f_bsize));  // includes what is reserved for
                                                                                       // the superuser
  if (!bytes) return std::nullopt;
  return FreeSpace{*bytes, type == XFS_SUPER_MAGIC};
}

}  // namespace poise
