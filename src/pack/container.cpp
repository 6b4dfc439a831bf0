#include "pack/container.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/directory.hpp"
#include "io/source_part.hpp"
#include "io/source_text.hpp"
#include "io/whole_blob.hpp"
#include "pack/archive_links.hpp"
#include "pack/member_order.hpp"
#include "pack/tar.hpp"
#include "pack/zip.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostDecodedMember = std::uint64_t{1} << 30;

class DirectoryContainer final : public Container {
 public:
  DirectoryContainer(const fs::path& path, IoMode io) : Container(ContainerKind::directory, path), io_(io) {}

  fs::path file_of(std::string_view name) const override { return path(name); }
  MemberNames names(std::string_view folder) const override {
    MemberNames names;
    std::error_code ignored;
    if (!folder.empty() && !fs::is_directory(path(folder), ignored)) return names;
    for (DirectoryEntry& entry : list_directory(path(folder))) names.push_back(std::move(entry.name));
    return names;
  }
  bool has(std::string_view name) const override {
    std::error_code ignored;
    return fs::exists(fs::symlink_status(path(name), ignored));  // of a link itself: it may lead nowhere
  }
  bool has_file(std::string_view name) const override {
    std::error_code ignored;
    return fs::is_regular_file(path(name), ignored);
  }
  SourcePtr open(std::string_view name) const override { return Source::open(path(name), io_); }
  std::unique_ptr<const Container> folder(const std::string& name) const override {
    return std::make_unique<DirectoryContainer>(path(name), io_);
  }

 private:
  IoMode io_;
};

// An archive's files by name, and its links as what they stand for.
template <typename Member>
class MemberTable {
 public:
  struct Entry {
    const Member* member = nullptr;
    std::string problem = {};  // of a link that leads nowhere
  };

  // Requires: the name is new; the member outlives this.
  void add(std::string name, const Member& member) { entries_.try_emplace(std::move(name), Entry{&member}); }
  // Requires: the names are new; all members are there. Returns the names of links that are folders with members, too.
  ToldNames add(const std::vector<ArchiveLink>& links) {
    ToldNames folders;
    if (links.empty()) return folders;
    const auto has = [&](std::string_view name) { return entries_.find(name) != entries_.end(); };
    const auto has_any = [&](std::string_view beginning) {
      const auto next = entries_.lower_bound(beginning);
      return next != entries_.end() && next->first.starts_with(beginning);
    };
    for (FollowedLink& link : follow_links(links, {has, has_any})) {
      const Member* member = link.member.empty() ? nullptr : entries_.find(link.member)->second.member;
      entries_.try_emplace(std::move(link.name), Entry{member, std::move(link.problem)});
    }
    for (const ArchiveLink& link : links) {
      if (has_any(link.name + '/')) folders.add(short_name(link.name));
    }
    return folders;
  }

  const auto& entries() const { return entries_; }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

// A zip or tar archive, or a folder of it.
template <typename Archive>
class ArchiveContainer final : public Container {
 public:
  using Entry = typename MemberTable<typename Archive::Member>::Entry;

  ArchiveContainer(fs::path file, std::shared_ptr<const Archive> archive, const std::string& folder)
      : Container(Archive::kKind, folder.empty() ? file : file / folder),
        file_(std::move(file)),
        archive_(std::move(archive)),
        beginning_(beginning_of(folder)) {}

  fs::path path(std::string_view name) const override {
    if (name.empty()) return Container::path();
    return fmt::format("{}: {}{}", file_.string(), beginning_, name);
  }
  fs::path file_of(std::string_view) const override { return file_; }
  MemberNames names(std::string_view folder) const override {
    MemberNames names;
    for_each(beginning_of(folder), [&](std::string_view name, const Entry&) { names.emplace_back(name); });
    return names;
  }
  bool has(std::string_view name) const override { return find(name) != nullptr; }
  bool has_file(std::string_view name) const override {
    const Entry* found = find(name);
    return found != nullptr && found->member != nullptr;
  }
  SourcePtr open(std::string_view name) const override {
    const Entry* found = find(name);
    if (found == nullptr) throw Error(ErrorKind::not_found, "the archive has no such member", path(name).string());
    if (found->member == nullptr) throw Error(ErrorKind::not_found, found->problem, path(name).string());
    return archive_->open(*found->member, path(name).string());
  }
  std::unique_ptr<const Container> folder(const std::string& name) const override {
    return std::make_unique<ArchiveContainer>(file_, archive_, beginning_ + name);
  }
  std::vector<Finding> warnings() const override {
    constexpr std::size_t kMost = 10;
    std::vector<Finding> warnings = archive_->warnings();
    std::size_t lost = 0;
    for_each({}, [&](std::string_view name, const Entry& entry) {
      if (entry.member != nullptr || ++lost > kMost) return;
      warnings.push_back(
          {Severity::warning, fmt::format("left out: {}", entry.problem), path(name).string(), std::nullopt});
    });
    if (lost > kMost)
      warnings.push_back({Severity::warning, fmt::format("{} more links lead nowhere and are left out", lost - kMost),
                          file_.string(), std::nullopt});
    return warnings;
  }
  std::size_t checksums() const override { return archive_->checksums(); }
  std::vector<Finding> check() const override { return archive_->check(); }

 private:
  static std::string beginning_of(std::string_view folder) {
    return folder.empty() ? std::string() : fmt::format("{}/", folder);
  }

  const Entry* find(std::string_view name) const {
    const auto& entries = archive_->table().entries();
    const auto found = entries.find(fmt::format("{}{}", beginning_, name));
    return found == entries.end() ? nullptr : &found->second;
  }
  // Of the names that begin so, in order.
  template <typename Visit>
  void for_each(const std::string& folder, Visit visit) const {
    const std::string beginning = beginning_ + folder;
    const auto& entries = archive_->table().entries();
    for (auto at = entries.lower_bound(beginning); at != entries.end() && at->first.starts_with(beginning); ++at)
      visit(std::string_view(at->first).substr(beginning.size()), at->second);
  }

  fs::path file_;
  std::shared_ptr<const Archive> archive_;
  std::string beginning_;  // of the names in it
};

// Members below a linked folder have names of their own.
template <typename Member>
void add_links(MemberTable<Member>& table, const std::vector<ArchiveLink>& links, const Source& archive,
               std::vector<Finding>& warnings) {
  const ToldNames folders = table.add(links);
  if (folders.empty()) return;
  warnings.push_back({Severity::warning,
                      fmt::format("{}: a link, and a folder with members, which are read as they are named; unpacked, "
                                  "they would be where the link leads",
                                  folders.text()),
                      archive.name(), std::nullopt});
}

class ZipFile {
 public:
  using Member = ZipMember;
  static constexpr ContainerKind kKind = ContainerKind::zip;

  explicit ZipFile(const SourcePtr& source) : zip_(source) { list(); }

  const MemberTable<Member>& table() const { return table_; }
  const std::vector<Finding>& warnings() const { return warnings_; }
  SourcePtr open(const ZipMember& member, const std::string& name) const {
    if (!member.deflated) return make_source_part(zip_.source(), member.begin, member.bytes, name);
    const std::uint64_t justified = max_decoded_bytes(zip_.source()->size());
    const std::uint64_t left = justified - std::min(justified, decoded_.load());
    SourcePtr source = zip_.open(member, std::min(kMostDecodedMember, left), name);
    decoded_ += source->size();
    return source;
  }
  std::size_t checksums() const { return zip_.members().size(); }
  std::vector<Finding> check() const { return zip_.check_crc32(); }

 private:
  void list() {
    struct Listed {
      std::string name;
      const ZipMember* member;
    };
    MemberOrder order;
    std::vector<Listed> listed;
    for (const ZipMember& member : zip_.members()) {
      std::string name = plain_member_name(member.name);
      if (name.empty() || name.ends_with('/')) continue;
      order.add(name, member.name);
      listed.push_back({std::move(name), &member});
    }
    std::vector<ArchiveLink> links;
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (!order.counts(i)) continue;
      if (listed[i].member->is_link) {
        require_few(links);
        links.push_back(link_of(std::move(listed[i].name), *listed[i].member));
      } else {
        table_.add(std::move(listed[i].name), *listed[i].member);
      }
    }
    if (auto repeated = order.repeated("zip", zip_.source()->name())) warnings_.push_back(*std::move(repeated));
    add_links(table_, links, *zip_.source(), warnings_);
  }
  void require_few(const std::vector<ArchiveLink>& links) const {
    if (links.size() < kMostArchiveLinks) return;
    throw Error(ErrorKind::unsupported, fmt::format("zip: more than {} links", kMostArchiveLinks),
                zip_.source()->name(), 0);
  }
  // Its bytes are the target.
  ArchiveLink link_of(std::string name, const ZipMember& member) const {
    ArchiveLink link{std::move(name), {}};
    if (member.bytes > kMostTargetBytes) {
      link.problem = fmt::format("whose target has {} bytes, at most {} are read", member.bytes, kMostTargetBytes);
      return link;
    }
    try {
      const SourcePtr source = open(member, zip_.source()->name());
      link.target = read_text(*source, source->size());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      link.problem = fmt::format("whose target cannot be read ({})", error.message());
    }
    return link;
  }

  ZipArchive zip_;
  std::vector<Finding> warnings_;
  MemberTable<Member> table_;
  mutable std::atomic<std::uint64_t> decoded_ = 0;  // of all members that have been opened
};

class TarFile {
 public:
  using Member = TarMember;
  static constexpr ContainerKind kKind = ContainerKind::tar;

  explicit TarFile(SourcePtr source) : source_(std::move(source)), listing_(read_tar(*source_)) {
    for (const TarMember& member : listing_.members) table_.add(member.name, member);
    add_links(table_, listing_.links, *source_, listing_.warnings);
  }

  const MemberTable<Member>& table() const { return table_; }
  const std::vector<Finding>& warnings() const { return listing_.warnings; }
  SourcePtr open(const TarMember& member, const std::string& name) const {
    return make_source_part(source_, member.begin, member.bytes, name);
  }
  std::size_t checksums() const { return 0; }
  std::vector<Finding> check() const { return {}; }

 private:
  SourcePtr source_;
  TarListing listing_;
  MemberTable<Member> table_;
};

template <typename Archive>
std::unique_ptr<const Container> open_archive(const fs::path& path, const SourcePtr& source) {
  return std::make_unique<ArchiveContainer<Archive>>(path, std::make_shared<const Archive>(source), std::string());
}

bool always(const Source&) { return true; }

// How an archive is recognized and opened.
struct ArchiveRow {
  ContainerKind kind;
  std::uint64_t offset;
  std::string_view magic;
  bool (*holds)(const Source& source);  // asked after the magic
  std::unique_ptr<const Container> (*open)(const fs::path& path, const SourcePtr& source);
};

constexpr std::array kArchives = {
    ArchiveRow{ContainerKind::zip, 0, "PK\x03\x04", always, open_archive<ZipFile>},
    ArchiveRow{ContainerKind::zip, 0, "PK\x05\x06", always, open_archive<ZipFile>},  // without members
    ArchiveRow{ContainerKind::tar, 257, "ustar", always, open_archive<TarFile>},
    ArchiveRow{ContainerKind::tar, 0, "", is_tar, open_archive<TarFile>},  // from before POSIX
};

bool has_magic(const Source& source, const ArchiveRow& archive) {
  if (source.size() < archive.offset || source.size() - archive.offset < archive.magic.size()) return false;
  std::array<char, 8> bytes{};
  const auto there = std::span(bytes).first(archive.magic.size());
  source.read(archive.offset, std::as_writable_bytes(there));
  return std::string_view(there.data(), there.size()) == archive.magic && archive.holds(source);
}

}  // namespace

std::optional<ContainerKind> container_kind(const SourcePtr& source) {
  if (!source) return ContainerKind::directory;
  const auto found = std::ranges::find_if(kArchives, [&](const ArchiveRow& row) { return has_magic(*source, row); });
  return found == kArchives.end() ? std::nullopt : std::optional(found->kind);
}

std::unique_ptr<const Container> open_container(ContainerKind kind, const fs::path& path, const SourcePtr& source,
                                                IoMode io) {
  if (kind == ContainerKind::directory) return std::make_unique<DirectoryContainer>(path, io);
  return std::ranges::find(kArchives, kind, &ArchiveRow::kind)->open(path, source);
}

}  // namespace poise
