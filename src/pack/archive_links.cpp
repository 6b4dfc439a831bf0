#include "pack/archive_links.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pack/member_order.hpp"

namespace poise {
namespace {

constexpr int kMostHops = 40;
constexpr std::uint64_t kMostWork = std::uint64_t{256} << 20;

constexpr std::string_view kRemedy = "pack the directory again with the files in place of their links (tar -h)";

// Calls take(component) from front to back.
template <typename Take>
void for_each_component(std::string_view path, Take take) {
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    take(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
}

class Follower {
 public:
  Follower(const std::vector<ArchiveLink>& links, const ArchiveMembers& members) : members_(members) {
    for (const ArchiveLink& link : links) {
      if (!link.is_hard) links_.emplace(link.name, &link);
    }
  }

  // Nothing for a link to a folder.
  std::optional<FollowedLink> follow(const ArchiveLink& link) {
    if (!link.problem.empty())
      return FollowedLink{link.name, {}, fmt::format("a symbolic link, {}: {}", link.problem, kRemedy)};
    if (link.is_hard) return lost(link, "which is not before it in the archive");
    if (auto problem = walk(link)) return lost(link, *problem);
    if (members_.has(path_)) return FollowedLink{link.name, path_, {}};
    if (path_.empty() || is_folder()) return std::nullopt;
    return lost(link, "which is not in the archive");
  }

 private:
  static FollowedLink lost(const ArchiveLink& link, std::string_view problem) {
    return {link.name,
            {},
            fmt::format("a {} link to {}, {}: {}", link.is_hard ? "hard" : "symbolic", short_name(link.target), problem,
                        kRemedy)};
  }

  // Sets path_ to where the link leads; returns why it leads nowhere.
  std::optional<std::string_view> walk(const ArchiveLink& first) {
    const std::size_t slash = first.name.rfind('/');
    path_ = first.name.substr(0, slash == std::string::npos ? 0 : slash);
    left_.clear();
    const ArchiveLink* link = &first;
    for (int hops = 0;; ++hops) {
      if (hops == kMostHops) return "which leads to more than 40 links, one after the other";
      if (!link->problem.empty()) return "which leads to a link whose target is not known";
      if (link->target.empty()) return "which names nothing";
      if (link->target.size() > kMostTargetBytes) return "which has more than 4096 bytes";
      if (link->target.front() == '/') return "which is outside of the archive";
      const std::size_t begin = left_.size();
      for_each_component(link->target, [&](std::string_view component) { left_.push_back(component); });
      std::reverse(left_.begin() + static_cast<std::ptrdiff_t>(begin), left_.end());
      link = nullptr;
      while (!left_.empty() && link == nullptr) {
        const std::string_view component = left_.back();
        left_.pop_back();
        if (!enter(component)) return "which is outside of the archive";
        if (work_ > kMostWork) return "which is not looked for: there are too many links with long names";
        if (component.empty() || component == "." || component == "..") continue;
        const auto found = links_.find(path_);
        if (found == links_.end()) continue;
        link = found->second;
        enter("..");
      }
      if (link == nullptr) return std::nullopt;
    }
  }

  // False if this leads out of the archive.
  bool enter(std::string_view component) {
    work_ += path_.size() + component.size() + 1;
    if (component.empty() || component == ".") return true;
    if (component == "..") {
      if (path_.empty()) return false;
      const std::size_t slash = path_.rfind('/');
      path_.erase(slash == std::string::npos ? 0 : slash);
      return true;
    }
    if (!path_.empty()) path_ += '/';
    path_ += component;
    return true;
  }

  bool is_folder() const {
    const std::string beginning = path_ + '/';
    if (members_.has_any(beginning)) return true;
    const auto link = links_.lower_bound(beginning);
    return link != links_.end() && link->first.starts_with(beginning);
  }

  const ArchiveMembers& members_;
  std::map<std::string_view, const ArchiveLink*, std::less<>> links_;
  std::string path_;
  std::vector<std::string_view> left_;  // components, the next one last
  std::uint64_t work_ = 0;              // bytes of names that have been looked at
};

}  // namespace

std::string plain_member_name(std::string_view name) {
  std::string plain;
  plain.reserve(name.size());
  for_each_component(name, [&](std::string_view component) {
    if (component.empty() || component == ".") return;
    if (!plain.empty()) plain += '/';
    plain += component;
  });
  if (name.ends_with('/') && !plain.empty()) plain += '/';
  return plain;
}

std::vector<FollowedLink> follow_links(const std::vector<ArchiveLink>& links, const ArchiveMembers& members) {
  std::vector<FollowedLink> followed;
  Follower follower(links, members);
  for (const ArchiveLink& link : links) {
    if (auto found = follower.follow(link)) followed.push_back(*std::move(found));
  }
  return followed;
}

}  // namespace poise
