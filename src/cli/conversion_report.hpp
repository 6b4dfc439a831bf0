// What `poise convert` prints of a conversion and of a plan.
#pragma once

#include <string>

#include <poise/convert.hpp>

namespace poise::cli {

enum class ReportDetail {
  notes,        // warnings and losses, on standard error
  types,        // and sizes, casts, quantized types and the tensors that lost most, on standard output
  all_tensors,  // and each quantized tensor
};

void print_conversion(const ConvertReport& report, const std::string& input, const ConvertOptions& options,
                      ReportDetail detail);

// As a table, with notes on standard error; as JSON (docs/plan.md).
void print_plan(const Plan& plan, const std::string& input, const ConvertOptions& options);
void print_plan_json(const Plan& plan, const std::string& input, const ConvertOptions& options);

}  // namespace poise::cli
