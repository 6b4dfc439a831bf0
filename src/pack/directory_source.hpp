// A DirectorySource is a directory that is not on the disk, such as a repository on a server. It is a Source without
// bytes, so that it can be opened as a file is.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "pack/container.hpp"

namespace poise {

class DirectorySource : public Source {
 public:
  // Returns the members of the directory.
  virtual std::unique_ptr<const Container> open_directory() const = 0;

  bool mapped() const override { return true; }
  std::span<const std::byte> bytes() const override { return {}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset != 0 || !out.empty()) throw Error(ErrorKind::internal, "a read of a directory", name(), offset);
  }

 protected:
  explicit DirectorySource(std::string name) : Source(std::move(name), 0) {}
};

// Returns the source itself if it is a DirectorySource; null for other sources.
inline const DirectorySource* find_directory_source(const SourcePtr& source) {
  return dynamic_cast<const DirectorySource*>(source.get());
}

}  // namespace poise
