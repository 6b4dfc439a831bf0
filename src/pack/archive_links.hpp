// Links in zip and tar archives: members without bytes of their own that stand for other members.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "bytes/function_ref.hpp"

namespace poise {

inline constexpr std::size_t kMostArchiveLinks = 100'000;
inline constexpr std::size_t kMostTargetBytes = 4096;

struct ArchiveLink {
  std::string name;
  std::string target;        // as the archive has it, or its first kMostTargetBytes + 1 bytes
  bool is_hard = false;      // the target is a path from the archive's root, and no member before the link has it
  std::string problem = {};  // why its target is not known; empty: it is
};

struct FollowedLink {
  std::string name;
  std::string member;   // that it stands for; empty: none
  std::string problem;  // why it stands for none
};

// The name without the components "." and without empty ones; one slash at its end stays.
std::string plain_member_name(std::string_view name);

// What an archive holds besides links.
struct ArchiveMembers {
  FunctionRef<bool(std::string_view name)> has;
  FunctionRef<bool(std::string_view beginning)> has_any;  // with names that begin so
};

// Follows links as a file system would, of folders as well, without leaving the archive. Leaves out links to folders:
// the members of these have names of their own. Looks at no more than 40 links for each, and at 256 MiB of names for
// all; what needs more is a problem of the link. Requires: names of members and links are plain, and
// no two are the same.
std::vector<FollowedLink> follow_links(const std::vector<ArchiveLink>& links, const ArchiveMembers& members);

}  // namespace poise
