#include "syntax/pickle_machine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "syntax/value_budget.hpp"

namespace poise::pickle {
namespace {

constexpr std::uint64_t kMostProgramBytes = std::uint64_t{1} << 31;

}  // namespace

Program::Program(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin)
    : name_(name),
      begin_(begin),
      bytes_(bytes.first(std::min<std::size_t>(bytes.size(), kMostProgramBytes))),
      budget_(compute_value_limit(bytes_.size())) {}

PickleStep Program::read_step() {
  step_at_ = position_;
  return static_cast<PickleStep>(read_number<std::uint8_t>("a step"));
}

void Program::begin_frame(std::uint64_t length) {
  if (position_ < frame_end_) refuse("a frame begins inside another one, which Python's readers treat differently");
  has_run_out_ = length > bytes_.size() - position_;
  if (has_run_out_) refuse(fmt::format("a frame of {} bytes, {} are left", length, bytes_.size() - position_));
  frame_end_ = position_ + length;
}

void Program::require_in_frame(std::uint64_t end) const {
  if (step_at_ < frame_end_ && end > frame_end_)
    refuse("the step goes beyond the end of its frame, where Python's readers read different bytes");
}

std::span<const std::byte> Program::read_bytes(std::uint64_t length, std::string_view what) {
  has_run_out_ = length > bytes_.size() - position_;
  if (has_run_out_) fail(fmt::format("{}: {} bytes wanted, {} left", what, length, bytes_.size() - position_));
  require_in_frame(position_ + length);
  const auto bytes = bytes_.subspan(position_, static_cast<std::size_t>(length));
  position_ += bytes.size();
  return bytes;
}

std::string_view Program::read_line(std::string_view what) {
  const std::string_view rest = view_as_text(bytes_.subspan(position_));
  const std::size_t end = rest.find('\n');
  has_run_out_ = end == std::string_view::npos;
  if (has_run_out_) fail(fmt::format("{}: the line has no end", what));
  require_in_frame(position_ + end + 1);
  position_ += end + 1;
  return rest.substr(0, end);
}

bool Program::has_lines(std::size_t count) const {
  std::string_view rest = view_as_text(bytes_.subspan(position_));
  for (; count > 0; --count) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return false;
    rest.remove_prefix(end + 1);
  }
  return true;
}

std::uint64_t Program::read_length(std::string_view what) {
  const auto length = read_number<std::int32_t>(what);
  if (length < 0) fail(fmt::format("{}: {} bytes", what, length));
  return static_cast<std::uint64_t>(length);
}

void Program::charge(std::uint64_t bytes) {
  if (bytes > budget_)
    throw Error(ErrorKind::unsupported, "pickle: its objects take more memory than its size justifies", name_,
                begin_ + step_at_);
  budget_ -= bytes;
}

void Program::fail(const std::string& problem) const {
  throw Error(ErrorKind::invalid_file, "pickle: " + problem, name_, begin_ + step_at_);
}

void Program::refuse(const std::string& problem) const {
  throw Error(ErrorKind::unsupported, "pickle: " + problem, name_, begin_ + step_at_);
}

}  // namespace poise::pickle
