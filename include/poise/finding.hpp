// Finding: something about a file that its user should know, and the place it is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace poise {

enum class Severity : std::uint8_t {
  error,    // the file is not what it claims to be
  warning,  // usable, but unusual
};

struct Finding {
  Severity severity = Severity::warning;
  std::string message;  // one sentence; names tensor and part where it is about one
  std::string path;     // of the file; empty: not about one of them
  std::optional<std::uint64_t> offset;
  std::string tensor = {};  // that verify() found it in; empty: not known, or not about one
};

}  // namespace poise
