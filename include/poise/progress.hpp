// Progress: reports the progress of long calls, and lets a caller stop them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace poise {

struct ProgressEvent {
  std::uint64_t done = 0;   // bytes
  std::uint64_t total = 0;  // bytes
  std::string_view item;    // the current tensor; valid during the call
};

// A callback of long calls. It returns false to cancel; the call then throws Error{cancelled} and leaves no output.
// Called by one thread at a time, after at most a few megabytes.
using Progress = std::function<bool(const ProgressEvent&)>;

}  // namespace poise
