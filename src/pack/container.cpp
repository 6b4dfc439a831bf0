#include "pack/container.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/directory.hpp"
#include "io/read_fully.hpp"
#include "io/source_range.hpp"
#include "pack/directory_source.hpp"
#include "pack/zip.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostDecodedMember = std::uint64_t{1} << 30;

class DirectoryContainer final : public Container {
 public:
  DirectoryContainer(const fs::path& path, IoMode io) : Container(ContainerKind::directory, path), io_(io) {}

  fs::path locate_file(std::string_view name) const override { return path(name); }
  MemberNames list_names(std::string_view folder) const override {
    MemberNames names;
    std::error_code ignored;
    if (!folder.empty() && !fs::is_directory(path(folder), ignored)) return names;
    for (DirectoryEntry& entry : list_directory(path(folder))) names.push_back(std::move(entry.name));
    return names;
  }
  bool has(std::string_view name) const override {
    std::error_code ignored;
    return fs::exists(fs::symlink_status(path(name), ignored));  // true for a broken link, too
  }
  bool has_file(std::string_view name) const override {
    std::error_code ignored;
    return fs::is_regular_file(path(name), ignored);
  }
  SourcePtr open(std::string_view name) const override { return Source::open(path(name), io_); }
  std::unique_ptr<const Container> open_folder(const std::string& name) const override {
    return std::make_unique<DirectoryContainer>(path(name), io_);
  }

 private:
  IoMode io_;
};

// Opens members of an archive, and limits the decoded bytes of all of them together.
class ZipFile {
 public:
  explicit ZipFile(const SourcePtr& source) : zip_(source) {
    for (const ZipMember& member : zip_.members()) {
      std::string name = normalize_zip_name(member.name);
      if (!name.empty() && !name.ends_with('/')) members_.emplace(std::move(name), &member);
    }
  }

  // Returns the members by their normalized names.
  const std::map<std::string, const ZipMember*, std::less<>>& members() const { return members_; }
  SourcePtr open(const ZipMember& member, const std::string& name) const {
    if (!member.deflated) return make_source_part(zip_.source(), member.begin, member.bytes, name);
    const std::uint64_t justified = compute_decoded_limit(zip_.source()->size());
    const std::uint64_t left = justified - std::min(justified, decoded_.load());
    SourcePtr source = zip_.open(member, std::min(kMostDecodedMember, left), name);
    decoded_ += source->size();
    return source;
  }
  const ZipArchive& archive() const { return zip_; }

 private:
  ZipArchive zip_;
  std::map<std::string, const ZipMember*, std::less<>> members_;
  mutable std::atomic<std::uint64_t> decoded_ = 0;  // the decoded bytes of all members that have been opened
};

// Reads a zip archive, or a folder of it.
class ZipContainer final : public Container {
 public:
  ZipContainer(fs::path file, std::shared_ptr<const ZipFile> zip, const std::string& folder)
      : Container(ContainerKind::zip, folder.empty() ? file : file / folder),
        file_(std::move(file)),
        zip_(std::move(zip)),
        beginning_(make_name_prefix(folder)) {}

  fs::path path(std::string_view name) const override {
    if (name.empty()) return Container::path();
    return fmt::format("{}: {}{}", file_.string(), beginning_, name);
  }
  fs::path locate_file(std::string_view) const override { return file_; }
  MemberNames list_names(std::string_view folder) const override {
    MemberNames names;
    const std::string beginning = beginning_ + make_name_prefix(folder);
    const auto& members = zip_->members();
    for (auto at = members.lower_bound(beginning); at != members.end() && at->first.starts_with(beginning); ++at)
      names.push_back(at->first.substr(beginning.size()));
    return names;
  }
  bool has(std::string_view name) const override { return has_file(name); }
  bool has_file(std::string_view name) const override { return find(name) != nullptr; }
  SourcePtr open(std::string_view name) const override {
    const ZipMember* found = find(name);
    if (found == nullptr) throw Error(ErrorKind::not_found, "the archive has no such member", path(name).string());
    return zip_->open(*found, path(name).string());
  }
  std::unique_ptr<const Container> open_folder(const std::string& name) const override {
    return std::make_unique<ZipContainer>(file_, zip_, beginning_ + name);
  }
  std::size_t count_checksums() const override { return zip_->archive().members().size(); }
  std::vector<Finding> check_checksums() const override { return zip_->archive().check_crc32(); }

 private:
  static std::string make_name_prefix(std::string_view folder) {
    return folder.empty() ? std::string() : fmt::format("{}/", folder);
  }

  const ZipMember* find(std::string_view name) const {
    const auto found = zip_->members().find(fmt::format("{}{}", beginning_, name));
    return found == zip_->members().end() ? nullptr : found->second;
  }

  fs::path file_;
  std::shared_ptr<const ZipFile> zip_;
  std::string beginning_;  // the folder and a slash, which begin its members' names; empty: the whole archive
};

bool begins_with(const Source& source, std::string_view magic) {
  if (source.size() < magic.size()) return false;
  std::array<char, 4> bytes{};
  const auto there = std::span(bytes).first(magic.size());
  source.read(0, std::as_writable_bytes(there));
  return std::string_view(there.data(), there.size()) == magic;
}

}  // namespace

std::optional<ContainerKind> find_container_kind(const SourcePtr& source) {
  if (!source || find_directory_source(source) != nullptr) return ContainerKind::directory;
  const bool is_empty_zip = begins_with(*source, "PK\x05\x06");
  const bool is_zip = is_empty_zip || begins_with(*source, "PK\x03\x04");
  return is_zip ? std::optional(ContainerKind::zip) : std::nullopt;
}

std::unique_ptr<const Container> open_container(ContainerKind kind, const fs::path& path, const SourcePtr& source,
                                                IoMode io) {
  if (const DirectorySource* directory = find_directory_source(source)) return directory->open_directory();
  if (kind == ContainerKind::directory) return std::make_unique<DirectoryContainer>(path, io);
  return std::make_unique<ZipContainer>(path, std::make_shared<const ZipFile>(source), std::string());
}

}  // namespace poise
