// Declares Destination, the place where adapters, deltas and edited copies are written: a path, or an output that the
// caller has opened, such as standard output.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <poise/delta.hpp>
#include <poise/edit.hpp>
#include <poise/make_lora.hpp>

#include "formats/format.hpp"
#include "io/sink.hpp"

namespace poise {

class Destination {
 public:
  explicit Destination(std::filesystem::path path) : path_(std::move(path)) {}
  // Requires: the output outlives this.
  explicit Destination(SavedOutput& output) : opened_(&output) {}

  // Returns the path; empty for an output of the caller.
  const std::filesystem::path& path() const { return path_; }
  // Throws the bad_argument that open() would throw. A dry run needs no path.
  void require_possible(const Format& format, bool overwrite, const std::vector<std::filesystem::path>& inputs,
                        bool is_dry_run) const;
  // Returns the output, which lives as long as this. Throws as make_saved_output() does.
  SavedOutput& open(const Format& format, bool overwrite, std::vector<std::filesystem::path> inputs);

 private:
  std::filesystem::path path_;
  SavedOutput* opened_ = nullptr;
  std::unique_ptr<SavedOutput> own_;
};

// Each function does the same as the public one of its name. Without a path, the format of an adapter follows from
// `format` of the options alone.
ExtractLoraReport extract_lora(const std::filesystem::path& base, const std::filesystem::path& tuned,
                               Destination destination, const ExtractLoraOptions& options);
ConvertLoraReport convert_lora(const std::filesystem::path& adapter, Destination destination,
                               const ConvertLoraOptions& options);
DeltaReport make_delta(const std::filesystem::path& base, const std::filesystem::path& tuned, Destination destination,
                       const DeltaOptions& options);
EditReport edit_copy(const std::filesystem::path& path, Destination destination, const AttributeChanges& changes,
                     bool overwrite);

}  // namespace poise
