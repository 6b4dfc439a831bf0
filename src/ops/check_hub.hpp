// Files of the Hugging Face Hub's cache, compared with their names (io/hub_cache.hpp), and other files with a digest
// that their user knows.
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
  std::size_t files = 0;  // compared with their digests
  std::uint64_t bytes = 0;
};

// Checks all blobs and snapshots of a repository, or of a folder of repositories. Finds blobs whose bytes do not match
// their names, partial downloads, links that lead nowhere, shards that an index names and that are absent, and branches
// without their snapshot. Reads all bytes, on all threads. Throws io, cancelled. Requires: is_hub_cache() or
// is_hub_repository().
HubCheck check_hub_cache(const std::filesystem::path& path, IoMode io, const Progress& progress);

// Checks the files of a snapshot, in folders as well; of a file that is a blob, or a link to one, that one. Checks no
// other paths.
HubCheck check_hub_files(const std::filesystem::path& path, IoMode io, const Progress& progress);

// Checks a file whose SHA-256 its user knows. `digits`: 64 of them, in lower case. Throws cancelled.
HubCheck check_sha256(const SourcePtr& file, std::string_view digits, const Progress& progress);

}  // namespace poise
