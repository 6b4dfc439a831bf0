// write_report: writes one page of HTML about a model, for a browser: content, sizes, numbers, findings and digests.
//
//   poise::write_report("model.gguf", "report.html", {.against = "original/"});
//
// The page holds its data and its script, and loads nothing. docs/report.md describes it.
#pragma once

#include <cstdint>
#include <filesystem>

#include <poise/format.hpp>
#include <poise/progress.hpp>

namespace poise {

struct ReportOptions {
  // The model that this one was made from: the page then shows what differs, and what quantizing cost. Empty: none.
  std::filesystem::path against = {};
  bool overwrite = false;  // replace a page that exists
  ReadOptions read = {};
  Progress progress = {};  // in bytes
};

// Writes the page, and returns its size in bytes. Reads every byte of the model, and of `against`. Faults of the data
// are part of the page. The page appears whole or not at all. Throws what open() throws, bad_argument (the page exists,
// or is one of the inputs), io, and cancelled.
std::uint64_t write_report(const std::filesystem::path& path, const std::filesystem::path& page,
                           const ReportOptions& options = {});

}  // namespace poise
