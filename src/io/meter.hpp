// Meter: counts bytes for a Progress callback and turns its "no" into Error{cancelled}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <poise/error.hpp>
#include <poise/progress.hpp>

namespace poise {

// Used from one thread at a time.
class Meter {
 public:
  Meter() = default;
  Meter(Progress progress, std::uint64_t total) : progress_(std::move(progress)), total_(total) {}

  void start(std::string_view item) {
    item_ = item;
    advance(0);
  }
  void advance(std::uint64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_({done_, total_, item_})) throw Error(ErrorKind::cancelled, "cancelled");
  }

 private:
  Progress progress_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
  std::string item_;
};

}  // namespace poise
