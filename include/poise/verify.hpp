// verify: everything about a file that can be wrong, found by reading all of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <poise/finding.hpp>
#include <poise/format.hpp>

namespace poise {

struct VerifyReport {
  std::string format;  // "alt-v2"; empty when the file could not be opened
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;       // decoded bytes that were looked at
  std::size_t digests = 0;       // of parts, that were checked
  std::size_t file_digests = 0;  // of whole files, such as shards, that were checked
  std::size_t checksums = 0;     // of members of archives, that were checked
  bool has_digests = false;      // where false, bytes that changed to other valid ones do not show
  std::vector<Finding>
      faults;  // errors and warnings in file order: all of them, of bytes that tensors share at the first of these

  std::size_t errors() const;
  std::size_t warnings() const;
};

// Structure, agreement of configuration, vocabulary and shapes, whether the model's family can plan how it computes (a
// warning where the configuration is sound and Poise does not follow it), digests, and every value: booleans are 0 or
// 1; floating-point values that are not finite, which every format allows, are warnings. What is wrong with the file
// becomes a finding; not_found, io, bad_argument (the path is not a file) and cancelled are thrown.
VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options = {}, const Progress& progress = {});

}  // namespace poise
