#include "cli/progress.hpp"

#include <chrono>
#include <cstdio>
#include <memory>

#include <unistd.h>

#include "cli/text.hpp"
#include "cli/values.hpp"

namespace poise::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Holds numbers that all displays show.
struct State {
  State(const ProgressEvent& event, Clock::duration elapsed)
      : seconds(std::chrono::duration<double>(elapsed).count()),
        share(event.total == 0 ? 1 : static_cast<double>(event.done) / static_cast<double>(event.total)) {}

  double estimate_seconds_left() const { return share > 0 ? seconds / share - seconds : 0; }

  double seconds;
  double share;
};

// Draws a bar, and draws it again at most every 100 ms. The destructor erases it.
class Bar {
 public:
  explicit Bar(std::string verb) : verb_(std::move(verb)), start_(Clock::now()) {}
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;
  ~Bar() {
    if (drawn_) print_to_stderr("\r\x1b[K");
  }

  void show(const ProgressEvent& event) {
    const auto now = Clock::now();
    if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
    if (!drawn_ && now - start_ < std::chrono::milliseconds(300)) return;  // fast work needs no bar
    drawn_ = true;
    last_ = now;
    const State state(event, now - start_);
    const int filled = static_cast<int>(state.share * kWidth);
    const std::string line = fmt::format("{} [{:=<{}}{: <{}}] {:3.0f}%  {}  {} left  {}", verb_, "", filled, "",
                                         kWidth - filled, 100 * state.share, format_rate(event.done, state.seconds),
                                         format_seconds(state.estimate_seconds_left()), make_printable(event.item));
    // A wrapped line could not be erased.
    print_to_stderr("\r\x1b[K" + clip_columns(line, find_terminal_columns(STDERR_FILENO).value_or(kUsualColumns) - 1));
    std::fflush(stderr);
  }

 private:
  static constexpr int kWidth = 24;
  static constexpr std::size_t kUsualColumns = 80;
  std::string verb_;
  Clock::time_point start_;
  Clock::time_point last_;
  bool drawn_ = false;
};

// Prints a line every few seconds, and one at the end.
class Lines {
 public:
  explicit Lines(std::string verb) : verb_(std::move(verb)), start_(Clock::now()), last_(start_) {}

  void show(const ProgressEvent& event) {
    const bool is_end = event.done >= event.total;
    const auto now = Clock::now();
    if (ended_ || (!is_end && now - last_ < kBetween)) return;
    ended_ = is_end;
    last_ = now;
    const State state(event, now - start_);
    const std::string rate = format_rate(event.done, state.seconds);
    if (is_end) {
      print_to_stderr(
          fmt::format("{}: 100%, {}, {}, {}\n", verb_, format_bytes(event.done), format_seconds(state.seconds), rate));
    } else {
      print_to_stderr(fmt::format("{}: {:.0f}%, {} of {}, {}, {} left, {}\n", verb_, 100 * state.share,
                                  format_bytes(event.done), format_bytes(event.total), rate,
                                  format_seconds(state.estimate_seconds_left()), make_printable(event.item)));
    }
  }

 private:
  static constexpr std::chrono::seconds kBetween{3};
  std::string verb_;
  Clock::time_point start_;
  Clock::time_point last_;
  bool ended_ = false;
};

template <typename Display>
Progress make_display(const std::string& verb) {
  return [display = std::make_shared<Display>(verb)](const ProgressEvent& event) {
    display->show(event);
    return true;
  };
}

}  // namespace

void add_progress_options(CLI::App& command, ProgressOptions& options, const std::string& quiet) {
  add_choice_option<std::optional<ProgressDisplay>, ProgressDisplay>(
      command, "--progress", options.display,
      {{"auto", ProgressDisplay::automatic}, {"plain", ProgressDisplay::plain}, {"none", ProgressDisplay::none}},
      "Show progress on standard error: a bar on a terminal and nothing elsewhere (auto), or a line every few seconds "
      "(plain)")
      ->default_str("auto");
  command.add_flag("--quiet", options.quiet, quiet);
}

Progress make_progress(const ProgressOptions& options, const std::string& verb) {
  switch (options.display.value_or(options.quiet ? ProgressDisplay::none : ProgressDisplay::automatic)) {
    case ProgressDisplay::automatic: return ::isatty(STDERR_FILENO) != 0 ? make_display<Bar>(verb) : Progress();
    case ProgressDisplay::plain: return make_display<Lines>(verb);
    case ProgressDisplay::none: break;
  }
  return {};
}

std::string group_digits(Total total) {
  std::string out;
  append_grouped(out, total);
  return out;
}

void append_grouped(std::string& out, Total total) {
  if (total) {
    append_grouped(out, *total);
  } else {
    out += "2^64 or more";
  }
}

}  // namespace poise::cli
