// Makes the page of write_report() from inputs that may be streams.
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

// Returns the page. Throws the errors of write_report(), but ignores the options about files.
std::string make_report(const ReportInputs& inputs, const ReportOptions& options);

}  // namespace poise
