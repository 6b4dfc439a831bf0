// A Container has named files, in a directory or in a zip archive.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/source.hpp>

namespace poise {

enum class ContainerKind { directory, zip };

// Holds names of members, with / between folders.
using MemberNames = std::vector<std::string>;

class Container {
 public:
  virtual ~Container() = default;

  ContainerKind kind() const { return kind_; }
  // Returns the name of a member in messages: "model/config.json", in an archive "model.zip: config.json".
  virtual std::filesystem::path path(std::string_view name = {}) const { return name.empty() ? path_ : path_ / name; }
  // Returns the path of the file that holds the member's bytes: of the member, or of the archive.
  virtual std::filesystem::path locate_file(std::string_view name) const = 0;

  // Returns names relative to the folder: the entries of a directory, or all files of an archive in the folder and
  // below it. Throws io.
  virtual MemberNames list_names(std::string_view folder = {}) const = 0;
  // Returns true if the container has a member of that name. In a directory, folders and broken links count, too; in an
  // archive, only files. Returns false on errors of the system.
  virtual bool has(std::string_view name) const = 0;
  virtual bool has_file(std::string_view name) const = 0;
  // Opens a member: a file, a part of an archive, or the decoded bytes of a deflated member. Throws not_found,
  // invalid_file and io. Throws unsupported if a deflated member has more than 1 GiB, or if all deflated members that
  // were opened exceed compute_decoded_limit() of the archive's size.
  virtual SourcePtr open(std::string_view name) const = 0;

  // Fetches the beginnings of members that will be opened, several at a time, if each takes a request to a server.
  // Ignores errors, which the reads that follow will throw.
  virtual void prefetch(const MemberNames& /*names*/) const {}

  // Returns a folder as a container, with names relative to it.
  virtual std::unique_ptr<const Container> open_folder(const std::string& name) const = 0;

  // Returns the number of members with checksums.
  virtual std::size_t count_checksums() const { return 0; }
  // Returns an error for each member whose bytes do not match its checksum. Reads all bytes. Throws io.
  virtual std::vector<Finding> check_checksums() const { return {}; }

 protected:
  Container(ContainerKind kind, std::filesystem::path path) : kind_(kind), path_(std::move(path)) {}

 private:
  ContainerKind kind_;
  std::filesystem::path path_;
};

// Returns the kind of a container; std::nullopt for other files. A null source means a directory. Looks at a few bytes.
std::optional<ContainerKind> find_container_kind(const SourcePtr& source);

// Opens a container. `io` chooses how to open files of a directory. Throws invalid_file, unsupported, io. Requires: the
// source is of that kind.
std::unique_ptr<const Container> open_container(ContainerKind kind, const std::filesystem::path& path,
                                                const SourcePtr& source, IoMode io = IoMode::map);

}  // namespace poise
