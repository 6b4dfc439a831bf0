// verify: reads all of a file and finds all of its faults.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/format.hpp>

namespace poise {

// VerifyReport::format for a cache of the Hugging Face Hub, and for a repository in one.
inline constexpr std::string_view kHubCache = "hub-cache";

struct VerifyReport {
  std::string format;  // "alt-v2"; kHubCache; empty when the file could not be opened
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;       // decoded bytes that were read
  std::size_t digests = 0;       // of parts that were checked
  std::size_t file_digests = 0;  // of whole files, such as shards and blobs of a cache, that were checked
  std::size_t checksums = 0;     // of members of archives that were checked
  bool has_digests = false;      // false: changed bytes that are still valid do not show
  std::vector<Finding>
      faults;  // errors and warnings in file order: all of them; for shared bytes, at their first tensor

  // Return the number of errors and of warnings in `faults`.
  std::size_t errors() const;
  std::size_t warnings() const;
};

// Reads all of a file, and checks structure, agreement of configuration, vocabulary and shapes, whether the vocabulary
// has a tokenizer and the model's family can plan the computation (a warning if Poise does not implement what is
// valid), digests, and every value: booleans are 0 or 1; floating-point values that are not finite, which every format
// allows, are warnings. Faults of the file are findings: what load_weights() refuses of a model with a configuration
// shows as one. Throws not_found, io, bad_argument (the path is not a file) and cancelled.
//
// A snapshot in the cache of the Hugging Face Hub, and a file of one: also compares the files with the names of their
// blobs, which are digests. A repository of a cache ("models--ORG--NAME"), or a cache: compares all blobs, and finds
// partial downloads and missing files; opens no model.
VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options = {}, const Progress& progress = {});

}  // namespace poise
