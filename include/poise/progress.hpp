// Progress: how long calls report what they have done, and how a caller stops them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace poise {

struct ProgressEvent {
  std::uint64_t done = 0;   // bytes
  std::uint64_t total = 0;  // bytes
  std::string_view item;    // the tensor being worked on; valid during the call
};

// Returns false to cancel; the call then throws Error{cancelled} and leaves no output. Called from one thread at a
// time, often: after at most a few megabytes.
using Progress = std::function<bool(const ProgressEvent&)>;

}  // namespace poise
