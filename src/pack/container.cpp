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
  std::unique_ptr<const Container> folder(const std::string& name) const override {
    return std::make_unique<DirectoryContainer>(path(name), io_);
  }

 private:
  IoMode io_;
};

// A zip or tar archive, or a folder of it.
template <typename Archive>
class ArchiveContainer final : public Container {
 public:
  using Member = typename Archive::Member;

  ArchiveContainer(fs::path file, std::shared_ptr<const Archive> archive, const std::string& folder)
      : Container(Archive::kKind, folder.empty() ? file : file / folder),
        file_(std::move(file)),
        archive_(std::move(archive)),
        folder_(folder) {
    const std::string beginning = beginning_of(folder);
    for (const Member& member : archive_->members()) {
      if (member.name.starts_with(beginning) && !member.name.ends_with('/'))
        members_.emplace(member.name.substr(beginning.size()), &member);
    }
  }

  fs::path file_of(std::string_view) const override { return file_; }
  MemberNames names(std::string_view folder) const override {
    MemberNames names;
    const std::string beginning = beginning_of(folder);
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
    return archive_->open(*found->second, path(name).string());
  }
  std::unique_ptr<const Container> folder(const std::string& name) const override {
    return std::make_unique<ArchiveContainer>(file_, archive_, beginning_of(folder_) + name);
  }
  std::size_t checksums() const override { return archive_->checksums(); }
  std::vector<Finding> check() const override { return archive_->check(); }

 private:
  static std::string beginning_of(std::string_view folder) {
    return folder.empty() ? std::string() : fmt::format("{}/", folder);
  }

  fs::path file_;
  std::shared_ptr<const Archive> archive_;
  std::string folder_;
  std::map<std::string, const Member*, std::less<>> members_;
};

class ZipFile {
 public:
  using Member = ZipMember;
  static constexpr ContainerKind kKind = ContainerKind::zip;

  explicit ZipFile(const SourcePtr& source) : zip_(source) {}

  const std::vector<ZipMember>& members() const { return zip_.members(); }
  SourcePtr open(const ZipMember& member, const std::string& name) const {
    if (!member.deflated) return make_source_part(zip_.source(), member.begin, member.bytes, name);
    const std::uint64_t justified = max_decoded_bytes(zip_.source()->size());
    const std::uint64_t left = justified - std::min(justified, decoded_.load());
    SourcePtr source = zip_.open(member, std::min(kMostDecodedMember, left), name);
    decoded_ += source->size();
    return source;
  }
  std::size_t checksums() const { return members().size(); }
  std::vector<Finding> check() const { return zip_.check_crc32(); }

 private:
  ZipArchive zip_;
  mutable std::atomic<std::uint64_t> decoded_ = 0;  // of all members that have been opened
};

class TarFile {
 public:
  using Member = TarMember;
  static constexpr ContainerKind kKind = ContainerKind::tar;

  explicit TarFile(SourcePtr source) : source_(std::move(source)), members_(read_tar(*source_)) {}

  const std::vector<TarMember>& members() const { return members_; }
  SourcePtr open(const TarMember& member, const std::string& name) const {
    return make_source_part(source_, member.begin, member.bytes, name);
  }
  std::size_t checksums() const { return 0; }
  std::vector<Finding> check() const { return {}; }

 private:
  SourcePtr source_;
  std::vector<TarMember> members_;
};

template <typename Archive>
std::unique_ptr<const Container> open_archive(const fs::path& path, const SourcePtr& source) {
  return std::make_unique<ArchiveContainer<Archive>>(path, std::make_shared<const Archive>(source), std::string());
}

// How an archive is recognized and opened.
struct ArchiveRow {
  ContainerKind kind;
  std::uint64_t offset;
  std::string_view magic;
  std::unique_ptr<const Container> (*open)(const fs::path& path, const SourcePtr& source);
};

constexpr std::array kArchives = {
    ArchiveRow{ContainerKind::zip, 0, "PK\x03\x04", open_archive<ZipFile>},
    ArchiveRow{ContainerKind::zip, 0, "PK\x05\x06", open_archive<ZipFile>},  // without members
    ArchiveRow{ContainerKind::tar, 257, "ustar", open_archive<TarFile>},
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
                                                IoMode io) {
  if (kind == ContainerKind::directory) return std::make_unique<DirectoryContainer>(path, io);
  return std::ranges::find(kArchives, kind, &ArchiveRow::kind)->open(path, source);
}

}  // namespace poise
