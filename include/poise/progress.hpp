// Progress: reports the progress of long calls, and lets a caller stop them.
//
//   poise::hash(model, [](const poise::ProgressEvent& event) {
//     std::cerr << event.done * 100 / event.total << " % " << event.item << "\n";
//     return true;
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace poise {

// Describes how far a call has come.
struct ProgressEvent {
  std::uint64_t done = 0;   // in bytes, or in the unit that the call documents
  std::uint64_t total = 0;  // in the same unit
  std::string_view item;    // the current tensor or file, or the unit if it is not bytes; valid during the callback
};

// Long calls call this after every few megabytes, from one thread at a time. It returns false to cancel; the call then
// throws Error{cancelled} and leaves no output.
using Progress = std::function<bool(const ProgressEvent&)>;

}  // namespace poise
