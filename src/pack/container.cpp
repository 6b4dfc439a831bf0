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
#include "io/whole_blob.hpp"
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
    return fs::exists(path(name), ignored);
  }
  bool has_file(std::string_view name) const override {
    std::error_code ignored;
    return fs::is_regular_file(path(name), ignored);
  }
  SourcePtr open(std::string_view name) const override { return Source::open(path(name), io_); }

 private:
  IoMode io_;
};

// A zip or tar archive.
template <typename Member>
class ArchiveContainer : public Container {
 public:
  fs::path file_of(std::string_view) const override { return archive_; }
  MemberNames names(std::string_view folder) const override {
    MemberNames names;
    const std::string beginning = folder.empty() ? std::string() : fmt::format("{}/", folder);
    for (auto at = members_.lower_bound(beginning); at != members_.end() && at->first.starts_with(beginning); ++at)
      names.push_back(at->first.substr(beginning.size()));
    return names;
  }
  bool has(std::string_view name) const override { return members_.find(name) != members_.end(); }
  bool has_file(std::string_view name) const override { return has(name); }
  SourcePtr open(std::string_view name) const override {
    const auto found = members_.find(name);
    if (found == members_.end())
      throw Error(ErrorKind::not_found, "the archive has no such member", path(name).string());
    return open_member(found->second, path(name).string());
  }

 protected:
  ArchiveContainer(ContainerKind kind, const fs::path& archive, std::string_view folder)
      : Container(kind, folder.empty() ? archive : archive / folder), archive_(archive) {}

  // Leaves out members outside the folder, and folders.
  void add_all(const std::vector<Member>& members, std::string_view folder) {
    const std::string beginning = folder.empty() ? std::string() : fmt::format("{}/", folder);
    for (const Member& member : members) {
      if (member.name.starts_with(beginning) && !member.name.ends_with('/'))
        members_.emplace(member.name.substr(beginning.size()), member);
    }
  }

 private:
  virtual SourcePtr open_member(const Member& member, const std::string& name) const = 0;

  fs::path archive_;
  std::map<std::string, Member, std::less<>> members_;
};

class ZipContainer final : public ArchiveContainer<ZipMember> {
 public:
  ZipContainer(const fs::path& path, const SourcePtr& source, std::string_view folder)
      : ArchiveContainer(ContainerKind::zip, path, folder), zip_(source) {
    add_all(zip_.members(), folder);
  }

  std::size_t checksums() const override { return zip_.members().size(); }
  std::vector<Finding> check() const override { return zip_.check_crc32(); }

 private:
  SourcePtr open_member(const ZipMember& member, const std::string& name) const override {
    if (member.deflated) {
      const std::uint64_t justified = max_decoded_bytes(zip_.source()->size());
      const std::uint64_t left = justified - std::min(justified, decoded_.load());
      SourcePtr source = zip_.open(member, std::min(kMostDecodedMember, left), name);
      decoded_ += source->size();
      return source;
    }
    return make_source_part(zip_.source(), member.begin, member.bytes, name);
  }

  ZipArchive zip_;
  mutable std::atomic<std::uint64_t> decoded_ = 0;  // of all members that have been opened
};

class TarContainer final : public ArchiveContainer<TarMember> {
 public:
  TarContainer(const fs::path& path, SourcePtr source, std::string_view folder)
      : ArchiveContainer(ContainerKind::tar, path, folder), source_(std::move(source)) {
    add_all(read_tar(*source_), folder);
  }

 private:
  SourcePtr open_member(const TarMember& member, const std::string& name) const override {
    return make_source_part(source_, member.begin, member.bytes, name);
  }

  SourcePtr source_;
};

template <typename Archive>
std::unique_ptr<const Container> open_archive(const fs::path& path, const SourcePtr& source,
                                              const std::string& folder) {
  return std::make_unique<Archive>(path, source, folder);
}

// How an archive is recognized and opened.
struct ArchiveRow {
  ContainerKind kind;
  std::uint64_t offset;
  std::string_view magic;
  std::unique_ptr<const Container> (*open)(const fs::path& path, const SourcePtr& source, const std::string& folder);
};

constexpr std::array kArchives = {
    ArchiveRow{ContainerKind::zip, 0, "PK\x03\x04", open_archive<ZipContainer>},
    ArchiveRow{ContainerKind::zip, 0, "PK\x05\x06", open_archive<ZipContainer>},  // without members
    ArchiveRow{ContainerKind::tar, 257, "ustar", open_archive<TarContainer>},
};

bool has_magic(const Source& source, const ArchiveRow& archive) {
  if (source.size() < archive.offset || source.size() - archive.offset < archive.magic.size()) return false;
  std::array<char, 8> bytes{};
  const auto there = std::span(bytes).first(archive.magic.size());
  source.read(archive.offset, std::as_writable_bytes(there));
  return std::string_view(there.data(), there.size()) == archive.magic;
}

}  // namespace

std::optional<ContainerKind> container_kind(const SourcePtr& source) {
  if (!source) return ContainerKind::directory;
  const auto found = std::ranges::find_if(kArchives, [&](const ArchiveRow& row) { return has_magic(*source, row); });
  return found == kArchives.end() ? std::nullopt : std::optional(found->kind);
}

std::unique_ptr<const Container> open_container(ContainerKind kind, const fs::path& path, const SourcePtr& source,
                                                IoMode io, const std::string& folder) {
  if (kind == ContainerKind::directory) return std::make_unique<DirectoryContainer>(path, io);
  return std::ranges::find(kArchives, kind, &ArchiveRow::kind)->open(path, source, folder);
}

}  // namespace poise
