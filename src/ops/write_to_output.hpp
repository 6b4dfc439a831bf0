// Writes adapters and deltas to an output that the caller has opened, such as standard output, in place of a path.
#pragma once

#include <filesystem>

#include <poise/delta.hpp>
#include <poise/make_lora.hpp>

#include "io/sink.hpp"

namespace poise {

// Each function does the same as the public one of its name. `format` of the options names the format of the output.
ExtractLoraReport extract_lora(const std::filesystem::path& base, const std::filesystem::path& tuned,
                               SavedOutput& output, const ExtractLoraOptions& options);
ConvertLoraReport convert_lora(const std::filesystem::path& adapter, SavedOutput& output,
                               const ConvertLoraOptions& options);
DeltaReport make_delta(const std::filesystem::path& base, const std::filesystem::path& tuned, SavedOutput& output,
                       const DeltaOptions& options);

}  // namespace poise
