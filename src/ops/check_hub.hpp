// Checks files of the Hugging Face Hub's cache against their names (io/hub_cache.hpp), and any file against a digest
// that the user gives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/progress.hpp>
#include <poise/source.hpp>

namespace poise {

struct HubCheck {
  std::vector<Finding> findings;
  std::size_t files = 0;  // the number of files with a digest, including those that could not be read
  std::uint64_t bytes = 0;
};

// Checks all blobs and snapshots of a repository, or of a folder of repositories. Finds blobs whose bytes do not match
// their names, partial downloads, links without a target, shards that an index names and that are absent, and branches
// without their snapshot. Warns of files that no digest covers. Reads all bytes, on all threads. Throws io, cancelled.
// Requires: is_hub_cache() or is_hub_repository().
HubCheck check_hub_cache(const std::filesystem::path& path, IoMode io, const Progress& progress);

// Checks the files of a snapshot and of its folders; or one file, if it is a blob or a link to one. Does not check
// other paths.
HubCheck check_hub_files(const std::filesystem::path& path, IoMode io, const Progress& progress);

// Compares a file with the SHA-256 that the user gives. `digits` are 64 hexadecimal digits in lower case. Throws
// cancelled.
HubCheck check_sha256(const SourcePtr& file, std::string_view digits, const Progress& progress);

}  // namespace poise
