// Finding describes a fault or peculiarity of a file, and its place.
//
//   for (const poise::Finding& warning : model.warnings) std::cerr << warning.path << ": " << warning.message << "\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace poise {

// Grades a finding.
enum class Severity : std::uint8_t {
  error,    // the file is not what it claims to be
  warning,  // usable, but unusual
};

struct Finding {
  Severity severity = Severity::warning;
  std::string message;                  // one sentence; names tensor and part if it is about one
  std::string path;                     // the path of the file; empty if the finding is not about a file
  std::optional<std::uint64_t> offset;  // the place in that file, in bytes
  std::string tensor = {};              // the tensor in which verify() found it; empty: unknown, or not about one
};

}  // namespace poise
