// A Hugging Face directory, or one in an archive, whose files are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/format.hpp>
#include <poise/model.hpp>
#include <poise/source.hpp>

#include "pack/container.hpp"

namespace poise::huggingface {

// Opens files of the directory and records them.
class DirectoryReader {
 public:
  // Requires: the container outlives this.
  explicit DirectoryReader(const Container& files) : container_(files) {}

  const Container& container() const { return container_; }
  std::filesystem::path path(std::string_view name = {}) const { return container_.path(name); }
  bool has(std::string_view name) const { return container_.has(name); }

  // Throws what Source::open() throws.
  SourcePtr open(std::string_view name);

  // Files whose bytes are written again if the model has not changed them. Warns of one that cannot be decoded and was
  // not needed. Throws io.
  std::vector<DirectoryFile> other_files(std::vector<Finding>& warnings);

  // Throws invalid_file for more than 256 MiB.
  std::string text(std::string_view name);

  // The beginning of the model card, which is not part of the model: it may be absent, empty or anything else.
  std::string readme();

  // Warns of numbers that JSON lacks, and of those that are not kept exactly. Throws invalid_file.
  Attributes json_object(std::string_view name, std::vector<Finding>& warnings);

  // With the files that have been opened.
  Origin origin() const { return {container_.file_of({}), "huggingface", size_, files_}; }
  std::span<const SourcePtr> opened() const { return opened_; }

 private:
  void record(std::string_view name, const Source& source);

  const Container& container_;
  std::vector<std::filesystem::path> files_;
  std::vector<SourcePtr> opened_;
  SourcePtr readme_;
  std::uint64_t size_ = 0;
};

}  // namespace poise::huggingface
