// make_report: makes the page of write_report() from inputs that may be streams.
#pragma once

#include <optional>
#include <string>

#include <poise/report.hpp>

#include "formats/input.hpp"

namespace poise {

struct ReportInputs {
  Input model;
  std::optional<Input> against;
};

// Returns the page. Throws as write_report() does, but does not use the options about files.
std::string make_report(const ReportInputs& inputs, const ReportOptions& options);

}  // namespace poise
