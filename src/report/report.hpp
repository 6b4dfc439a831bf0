// make_report: one page of HTML about a model, for a browser: content, sizes, numbers, findings and digests.
//
// The page holds its data and its script, and loads nothing. docs/report.md describes it.
#pragma once

#include <optional>
#include <string>

#include <poise/format.hpp>
#include <poise/progress.hpp>

#include "formats/input.hpp"

namespace poise {

struct ReportOptions {
  ReadOptions read;
  Progress progress;
  std::string version;           // of Poise
  std::optional<Input> against;  // the original that the model was made from
};

// Returns the page. Reads every byte of the model, and of `against`. Faults of the data are part of the page. Throws
// what open() throws, and cancelled.
std::string make_report(const Input& input, const ReportOptions& options);

}  // namespace poise
