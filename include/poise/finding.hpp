// Finding describes a fault or peculiarity of a file, and its place.
//
//   for (const poise::Finding& warning : model.warnings) std::cerr << warning.path << ": " << warning.message << "\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace poise {

enum class Severity : std::uint8_t {
  error,    // the file is damaged, inconsistent or dangerous
  warning,  // usable, but unusual
};

struct Finding {
  Severity severity = Severity::warning;
  std::string message;                  // one sentence, with the names of the tensor and part if there are any
  std::string path;                     // the path of the file; empty if the finding is not about a file
  std::optional<std::uint64_t> offset;  // the place in that file, in bytes
  std::string tensor = {};              // the tensor in which verify() found it; empty: unknown or none
};

}  // namespace poise
