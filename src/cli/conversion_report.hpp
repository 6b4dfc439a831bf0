// What `poise convert` prints of a conversion and of a plan.
#pragma once

#include <string>

#include <poise/convert.hpp>

namespace poise::cli {

// Warnings, losses and decoded codes, on standard error.
void print_notes(const ConvertReport& report);

// Sizes, casts, quantized types and the tensors that lost most, or all of them, on standard output.
void print_conversion(const ConvertReport& report, const std::string& input, const ConvertOptions& options,
                      bool all_tensors);
// The same and the notes as JSON (docs/json.md).
void print_report_json(const ConvertReport& report, const std::string& input);

// As a table, with notes on standard error unless `quiet`; as JSON (docs/plan.md).
void print_plan(const Plan& plan, const std::string& input, const ConvertOptions& options, bool quiet);
void print_plan_json(const Plan& plan, const std::string& input, const ConvertOptions& options);

}  // namespace poise::cli
