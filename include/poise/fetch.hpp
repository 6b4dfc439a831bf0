// fetch: downloads a repository of the Hugging Face Hub, and checks each file against its digest.
//
//   const poise::FetchReport report = poise::fetch("hf://mistralai/Mistral-7B-v0.1");
//   const poise::Model model = poise::open(report.directory);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <poise/progress.hpp>

namespace poise {

struct FetchOptions {
  std::filesystem::path output;   // a directory for plain files; empty: the Hub's cache on this machine
  std::vector<std::string> only;  // shell patterns of file names; empty: all files
  bool overwrite = false;         // replaces files in `output` whose content differs
  std::size_t parallel = 4;       // files at once, 1 to 16
  Progress progress = {};
};

struct FetchReport {
  std::filesystem::path directory;  // the directory with the files: `output`, or the snapshot in the cache
  std::string commit;
  std::size_t files = 0;         // the number of files in the selection
  std::size_t kept = 0;          // files that were complete already
  std::uint64_t bytes = 0;       // bytes that were received
  std::uint64_t bytes_kept = 0;  // bytes that were there: whole files, and the beginnings of others
};

// Fetches hf://ORG/NAME[@REVISION][/FILE]. Each file appears under its name when it is complete and its SHA-256 (or
// git's SHA-1, for small files) is right. An interrupted fetch leaves files NAME.incomplete, which the next fetch
// continues.
//
// Throws what open_url() throws; bad_argument for other URLs, for a pattern that matches no file, and for an existing
// file with another content without options.overwrite; unsupported for a file without a digest; invalid_file for a
// wrong digest; io; cancelled.
FetchReport fetch(const std::string& url, const FetchOptions& options = {});

}  // namespace poise
