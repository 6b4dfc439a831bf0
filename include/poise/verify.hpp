// verify: reads all of a file and finds all of its faults.
//
//   for (const poise::Finding& fault : poise::verify("model.alt").faults) std::cerr << fault.message << "\n";
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/format.hpp>

namespace poise {

// This is VerifyReport::format for a cache of the Hugging Face Hub, and for a repository in one.
inline constexpr std::string_view kHubCache = "hub-cache";

struct VerifyReport {
  std::string format;  // "alt-v2"; kHubCache; empty when the file could not be opened
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;       // decoded bytes that were read
  std::size_t digests = 0;       // checked digests of parts
  std::size_t file_digests = 0;  // checked digests of whole files, such as shards and blobs of a cache
  std::size_t checksums = 0;     // checked checksums of members of archives
  bool has_digests = false;      // false: verify() cannot detect changed bytes that are still valid
  // All errors and warnings, in file order. A fault in bytes that several tensors share is listed at the first one.
  std::vector<Finding> faults;

  // Each function returns the number of errors, or that of warnings, in `faults`.
  std::size_t errors() const;
  std::size_t warnings() const;
};

// Reads all of a file and checks structure, digests, and every value: booleans are 0 or 1; floating-point values that
// are not finite, which every format allows, are warnings. Also checks that configuration, vocabulary and shapes agree,
// that the vocabulary has a tokenizer, and that the model's family can plan the computation (a warning if the model is
// valid, but Poise cannot run it). Faults of the file are findings. Throws not_found, io, bad_argument (the path is
// neither a file nor a directory) and cancelled.
//
// For a snapshot in the cache of the Hugging Face Hub, or a file in one, also compares the files with the names of
// their blobs, which are digests. For a whole cache, or a repository in it ("models--ORG--NAME"), compares all blobs
// and finds partial downloads and missing files; opens no model.
VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options = {}, const Progress& progress = {});

}  // namespace poise
