// Container: named files in a directory, or in a zip archive.
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

// Names of members, with / between folders.
using MemberNames = std::vector<std::string>;

class Container {
 public:
  virtual ~Container() = default;

  ContainerKind kind() const { return kind_; }
  // Returns the name of a member in messages: "model/config.json", in an archive "model.zip: config.json".
  virtual std::filesystem::path path(std::string_view name = {}) const { return name.empty() ? path_ : path_ / name; }
  // Returns the file that has its bytes.
  virtual std::filesystem::path locate_file(std::string_view name) const = 0;

  // Returns the entries of a directory's folder itself; of an archive's, all files in it and below, from the folder on.
  // Throws io.
  virtual MemberNames names(std::string_view folder = {}) const = 0;
  // Returns true for a file or anything else of that name; false if it cannot be known.
  virtual bool has(std::string_view name) const = 0;
  virtual bool has_file(std::string_view name) const = 0;
  // Opens a member: a stored one is a part of the archive, a deflated one is decoded. Throws not_found, io, and
  // unsupported for more than 1 GiB of a deflated member, and for more of all together than compute_decoded_limit() of
  // the archive.
  virtual SourcePtr open(std::string_view name) const = 0;

  // Returns a folder of the container; its names are relative to the folder.
  virtual std::unique_ptr<const Container> open_folder(const std::string& name) const = 0;

  // Returns how many members have checksums, and those whose bytes do not match. Reads all bytes. Throws io.
  virtual std::size_t count_checksums() const { return 0; }
  virtual std::vector<Finding> check_checksums() const { return {}; }

 protected:
  Container(ContainerKind kind, std::filesystem::path path) : kind_(kind), path_(std::move(path)) {}

 private:
  ContainerKind kind_;
  std::filesystem::path path_;
};

// Returns std::nullopt for a file that is not a container. Null is a directory. Looks at a few bytes.
std::optional<ContainerKind> find_container_kind(const SourcePtr& source);

// Opens a container. `io` says how files of a directory are opened. Throws invalid_file, unsupported, io. Requires: the
// source is of that kind.
std::unique_ptr<const Container> open_container(ContainerKind kind, const std::filesystem::path& path,
                                                const SourcePtr& source, IoMode io = IoMode::map);

}  // namespace poise
